// Copies the rows of a table in batches. Each batch has a transaction of its own.

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
  /** The name of the step in the table of progress. */
  name: string
  table: PlannedTable
  /** The columns that are read, the key included. */
  columns: readonly string[]
  /** Only rows with a value in this column are read. */
  having?: string
  /** Returns the statement that writes the rows. */
  write: (rows: readonly Row[]) => RawBuilder<unknown>
  /** The values of a row in the order in which the statement binds them. */
  values: (row: Row) => unknown[]
}

/** The step that inserts the rows of a table, without its late columns. */
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

/** The step that fills a late column of a table. */
export function updateStep(table: PlannedTable, column: string): Step {
  const { name } = table
  const [key = '', ...more] = table.key
  if (more.length > 0) throw new Error(`The table ${name} refers to itself and needs a key of one column.`)
  const values = (row: Row): unknown[] => [row[key], row[column]]
  // Both are ids. The type is written out because PostgreSQL takes a parameter here for a text.
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

/** Copies the rows that are not copied yet. `tell` receives the number of rows of each batch. */
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

/** Returns a function that writes rows. Its statement is compiled once for each number of rows. */
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
 * Returns the error of a batch as a sentence about the first row that fails. Nothing that the
 * search inserts is kept. Returns a fault of the storage unchanged.
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
  // The first `good` rows can be stored, and the first `bad` rows cannot.
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
