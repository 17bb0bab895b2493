// Copies the rows of a table in batches, one transaction for each batch.

import { type CompiledQuery, type RawBuilder, sql } from 'kysely'
import { storageFaultOf } from '../storage-errors.ts'
import type { DatabaseSnapshot, Db, Store } from '../store.ts'
import type { PlannedTable } from './plan.ts'
import { readPosition, writePosition } from './progress.ts'
import { TransferError } from './transfer-error.ts'

type Row = Readonly<Record<string, unknown>>

/** A batch has at most this many rows and about this many characters. */
const maxRows = 500
const maxCharacters = 4_000_000

export interface Step {
  /** The name of the step in the progress table. */
  name: string
  table: PlannedTable
  /** The columns to read, including the key. */
  columns: readonly string[]
  /** Skips rows in which this column is null. */
  having?: string
  /** Returns the statement that writes the rows. */
  write: (rows: readonly Row[]) => RawBuilder<unknown>
  /** The values of a row in the order in which the statement binds them. */
  values: (row: Row) => unknown[]
}

/** Returns the step that inserts the rows of a table, with null in its late columns (plan.ts). */
export function insertStep(table: PlannedTable): Step {
  const { columns, late, name } = table
  const values = (row: Row): unknown[] => columns.map((column) => (late.includes(column) ? null : row[column]))
  return {
    name: `insert ${name}`,
    table,
    columns,
    values,
    write: (rows) => sql`insert into ${sql.table(name)} (${listOf(columns)})
      values ${sql.join(rows.map((row) => sql`(${sql.join(values(row))})`))}`,
  }
}

/** Returns the step that fills a late column of a table (plan.ts). */
export function updateStep(table: PlannedTable, column: string): Step {
  const { name } = table
  const [key = '', ...more] = table.key
  if (more.length > 0) throw new Error(`The table ${name} refers to itself and needs a key of one column.`)
  const values = (row: Row): unknown[] => [row[key], row[column]]
  // Both values are ids. The casts are needed, because PostgreSQL assumes the type text for
  // parameters in `values`.
  const pair = ([id, value]: unknown[]): RawBuilder<unknown> => sql`(cast(${id} as bigint), cast(${value} as bigint))`
  return {
    name: `update ${name}.${column}`,
    table,
    columns: [key, column],
    having: column,
    values,
    write: (rows) => sql`with moved (id, value) as (values ${sql.join(rows.map((row) => pair(values(row))))})
      update ${sql.table(name)} set ${sql.ref(column)} = moved.value
      from moved where ${sql.ref(`${name}.${key}`)} = moved.id`,
  }
}

const listOf = (columns: readonly string[]): RawBuilder<unknown> => sql.join(columns.map((column) => sql.ref(column)))

/** Copies the rows after the stored position. `tell` receives the number of rows of each batch. */
export async function copyRows(
  source: DatabaseSnapshot,
  target: Store,
  step: Step,
  tell: (rows: number) => void,
): Promise<void> {
  const position = await readPosition(target.db, step.name)
  if (position === 'done') return
  const write = batchWriter(step)
  for await (const rows of batchesOf(source, target, step, position)) {
    const last = rows.at(-1) as Row
    try {
      await target.transaction(
        async (db) => {
          await write(db, rows)
          await writePosition(
            db,
            step.name,
            step.table.key.map((column) => last[column]),
          )
        },
        { isLong: true },
      )
    } catch (error) {
      throw await explained(target, step, rows, error)
    }
    tell(rows.length)
  }
  await target.transaction((db) => writePosition(db, step.name, 'done'))
}

async function* batchesOf(
  source: DatabaseSnapshot,
  target: Store,
  { table, columns, having, values }: Step,
  after: readonly unknown[] | null,
): AsyncIterable<Row[]> {
  const key = listOf(table.key)
  const conditions = [
    ...(having === undefined ? [] : [sql`${sql.ref(having)} is not null`]),
    ...(after === null ? [] : [sql`(${key}) > (${sql.join(after)})`]),
  ]
  const where = conditions.length === 0 ? sql`` : sql`where ${sql.join(conditions, sql` and `)}`
  const query = sql<Row>`select ${listOf(columns)} from ${sql.table(table.name)} ${where} order by ${key}`
  const most = Math.min(maxRows, Math.floor(target.dialect.maxParameters / columns.length))
  let rows: Row[] = []
  let characters = 0
  for await (const row of source.each({ compile: () => query.compile(source.db) })) {
    rows.push(row)
    for (const value of values(row)) if (typeof value === 'string') characters += value.length
    if (rows.length < most && characters < maxCharacters) continue
    yield rows
    rows = []
    characters = 0
  }
  if (rows.length > 0) yield rows
}

/**
 * Returns a function that writes rows. It reuses the compiled statement while the number of rows is
 * the same.
 */
function batchWriter({ write, values }: Step): (db: Db, rows: readonly Row[]) => Promise<void> {
  let known: { count: number; query: CompiledQuery } | undefined
  return async (db, rows) => {
    if (known?.count !== rows.length) known = { count: rows.length, query: write(rows).compile(db) }
    await db.executeQuery({ ...known.query, parameters: rows.flatMap(values) })
  }
}

/** Thrown to roll back the transaction of a trial insert that succeeded. */
class TrialOver extends Error {}

/**
 * Finds the first row of a failed batch that cannot be stored, by a binary search with trial
 * inserts that are rolled back. Returns an error about this row. Returns a storage fault unchanged.
 */
async function explained(target: Store, step: Step, rows: readonly Row[], error: unknown): Promise<unknown> {
  if (storageFaultOf(error) !== null) return error
  const fails = async (count: number): Promise<unknown> => {
    const write = batchWriter(step)
    try {
      await target.transaction(
        async (db) => {
          await write(db, rows.slice(0, count))
          throw new TrialOver()
        },
        { isLong: true },
      )
    } catch (reason) {
      return reason instanceof TrialOver ? null : reason
    }
    return null
  }
  // Invariant: the first `good` rows can be stored, and the first `bad` rows cannot.
  let [good, bad, reason] = [0, rows.length, error]
  while (bad - good > 1) {
    const middle = Math.floor((good + bad) / 2)
    const found = await fails(middle)
    if (found === null) good = middle
    else [bad, reason] = [middle, found]
  }
  const row = rows[bad - 1] ?? {}
  const key = step.table.key.map((column) => `${column} ${String(row[column])}`).join(', ')
  const message = reason instanceof Error ? reason.message : String(reason)
  return new TransferError(
    `The row with ${key} of the table ${step.table.name} cannot be stored in the target: ${message.replace(/\.?$/, '.')}`,
    reason,
  )
}
