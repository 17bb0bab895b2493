// Copies a whole database to an empty database of another engine, and verifies that both contain
// the same data. A killed copy continues when the command runs again. ../README.md explains the
// design.

import { type Kysely, sql } from 'kysely'
import { housekeepingTables } from '../housekeeping-tables.ts'
import { installationOf } from '../installation.ts'
import { migrate, migrations } from '../migrate.ts'
import type { DatabaseSnapshot, Db, Store } from '../store.ts'
import { type CheckedTable, type TableChecksum, valueChecksum } from '../table-checksums.ts'
import { copyRows, insertStep, type Step, updateStep } from './batches.ts'
import { inspect } from './inspect.ts'
import { type Plan, planTransfer } from './plan.ts'
import { createProgress, dropProgress, hasProgress, readSourceState, type SourceState } from './progress.ts'
import { TransferError } from './transfer-error.ts'

export type Phase = 'Reading' | 'Copying' | 'Verifying'
export type Tell = (done: number, total: number) => void

export interface TransferOptions {
  /** Runs each phase. The caller uses it to show the progress. */
  during?: <T>(phase: Phase, work: (tell: Tell) => Promise<T>) => Promise<T>
  /**
   * Tables that triggers fill in the target, and views on these tables. They are compared but not
   * copied.
   */
  derived?: readonly CheckedTable[]
  /**
   * Changes the schema of the target after all rows are copied. Runs again when a killed copy
   * continues.
   */
  finish?: (db: Db) => Promise<void>
}

export interface TransferResult {
  /** Whether an unfinished copy was continued. */
  isResumed: boolean
  tables: Record<string, TableChecksum>
}

const untyped = (db: Db): Kysely<unknown> => db as unknown as Kysely<unknown>

/**
 * Copies the source into the target. The source must have all migrations of this program. Throws
 * TransferError when the copy is impossible or differs from the source.
 */
export async function transfer(source: Store, target: Store, options: TransferOptions = {}): Promise<TransferResult> {
  const { during = (_phase, work) => work(() => undefined), derived = [], finish } = options
  if (source.dialect.name === target.dialect.name)
    throw new TransferError('The source and the target have the same engine. To copy, use accord backup and restore.')
  const isResumed = await isUnfinished(target)
  // The state is read before the snapshot, so that a change in between is detected.
  const state = await stateOf(source)
  const snapshot = await source.snapshot()
  try {
    if (isResumed) await assertSame(target, state)
    // The source is read before the target is changed, so that the target is still empty after a
    // refusal.
    const sums = await during('Reading', (tell) => readSource(source, snapshot, target, derived, tell))
    if (!isResumed) await createSchema(target, state)
    const plan = await planTransfer(snapshot, source, target)
    await during('Copying', (tell) => copyTables(snapshot, target, plan, sums, tell))
    await completeTarget(target, state, finish)
    const checked = [...plan.tables, ...derived]
    await during('Verifying', (tell) => verify(target, checked, sums, tell))
    await assertUnchanged(source, state)
    await finishCopy(snapshot, target, plan)
    const names = new Set(checked.map(({ name }) => name))
    return { isResumed, tables: Object.fromEntries([...sums].filter(([name]) => names.has(name))) }
  } finally {
    await snapshot.close()
  }
}

/** Returns whether the target has an unfinished copy. Throws when it has other tables. */
async function isUnfinished(target: Store): Promise<boolean> {
  if (await hasProgress(target.db)) return true
  if (await target.dialect.hasTables(untyped(target.db)))
    throw new TransferError('The target is not empty. Name an empty database, so that no data are mixed or lost.')
  return false
}

const stateOf = async (store: Store): Promise<SourceState> => ({
  installation: await installationOf(store),
  lastIds: await store.dialect.lastIds(untyped(store.db)),
})

async function assertSame(target: Store, state: SourceState): Promise<void> {
  const begun = await readSourceState(target.db)
  if (begun === null || begun.installation !== state.installation)
    throw new TransferError('The target has an unfinished copy of another installation. Name an empty database.')
  const changed = changedTables(begun, state)
  if (changed.length > 0)
    throw new TransferError(
      `The source has changed since the unfinished copy began (${changed.join(', ')}). Stop all servers and workers, empty the target, then run the command again.`,
    )
}

async function assertUnchanged(source: Store, state: SourceState): Promise<void> {
  source.renewReadTransaction()
  const changed = changedTables(state, await stateOf(source))
  if (changed.length > 0)
    throw new TransferError(
      `The source has changed during the copy (${changed.join(', ')}), and the target lacks these changes. Stop all servers and workers, empty the target, then run the command again.`,
    )
}

/**
 * Returns the tables with new rows. This detects every change of a record, because each adds an
 * event.
 */
const changedTables = (before: SourceState, after: SourceState): string[] =>
  [...new Set([...Object.keys(before.lastIds), ...Object.keys(after.lastIds)])]
    .filter((name) => before.lastIds[name] !== after.lastIds[name])
    .sort()

async function readSource(
  source: Store,
  snapshot: DatabaseSnapshot,
  target: Store,
  derived: readonly CheckedTable[],
  tell: Tell,
): Promise<Map<string, TableChecksum>> {
  const names = new Set(derived.map(({ name }) => name))
  const own = await source.dialect.copies.tables(untyped(snapshot.db))
  const tables = [...own.filter(({ name }) => !names.has(name)), ...derived]
  let done = 0
  return inspect(snapshot, tables, target.dialect, () => tell(++done, tables.length))
}

/**
 * Creates the tables with the migrations of this program, and deletes rows that the migrations
 * insert. Stores the state of the source in the same transaction, so a killed copy always has it.
 */
async function createSchema(target: Store, state: SourceState): Promise<void> {
  await migrate(target, migrations, {
    finish: async (db, dialect) => {
      await createProgress(db, dialect, state)
      for (const table of ['migrations', ...housekeepingTables]) await sql`delete from ${sql.table(table)}`.execute(db)
    },
  })
}

async function copyTables(
  snapshot: DatabaseSnapshot,
  target: Store,
  plan: Plan,
  sums: ReadonlyMap<string, TableChecksum>,
  tell: Tell,
): Promise<void> {
  const steps: { step: Step; rows: number }[] = []
  for (const table of plan.tables) steps.push({ step: insertStep(table), rows: sums.get(table.name)?.rows ?? 0 })
  // All rows exist by now, so late columns can be filled (plan.ts).
  for (const table of plan.tables)
    for (const column of table.late) steps.push({ step: updateStep(table, column), rows: 0 })
  const total = steps.reduce((sum, { rows }) => sum + rows, 0)
  let before = 0
  for (const { step, rows } of steps) {
    let done = 0
    await copyRows(snapshot, target, step, (count) => {
      done = Math.min(done + count, rows)
      tell(before + done, total)
    })
    before += rows
    tell(before, total)
  }
}

async function completeTarget(target: Store, state: SourceState, finish: TransferOptions['finish']): Promise<void> {
  if (finish) await target.transaction(finish, { isLong: true })
  await target.transaction((db) => target.dialect.resetSequences(untyped(db), state.lastIds))
  await target.maintain()
  await target.dialect.updateStatistics(target.db)
}

async function verify(
  target: Store,
  tables: readonly CheckedTable[],
  sums: ReadonlyMap<string, TableChecksum>,
  tell: Tell,
): Promise<void> {
  const copy = await target.snapshot()
  const differences: string[] = []
  try {
    let done = 0
    for (const table of tables) {
      const wanted = sums.get(table.name) ?? { rows: 0, sha256: '' }
      const found = await valueChecksum(copy, table)
      if (found.rows !== wanted.rows) differences.push(`${table.name} (${found.rows} rows instead of ${wanted.rows})`)
      else if (found.sha256 !== wanted.sha256) differences.push(`${table.name} (other values)`)
      tell(++done, tables.length)
    }
  } finally {
    await copy.close()
  }
  if (differences.length > 0)
    throw new TransferError(
      `The copy differs from the source in ${differences.join(', ')}. The source is unchanged. Empty the target, then run the command again.`,
    )
}

/**
 * Copies the table of migrations and drops the progress table, so that servers accept the target.
 */
async function finishCopy(snapshot: DatabaseSnapshot, target: Store, { migrations }: Plan): Promise<void> {
  const rows = await snapshot.db.selectFrom('migrations').selectAll().execute()
  await target.transaction(
    async (db) => {
      await db
        .insertInto(migrations.name as 'migrations')
        .values(rows)
        .execute()
      await dropProgress(db)
    },
    { isLong: true },
  )
  target.renewReadTransaction()
  await target.whenDurable()
}
