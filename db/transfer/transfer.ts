// Copies a whole database into an empty database of another engine, and proves that both hold the
// same data. A killed copy goes on when it runs again. ../README.md has the decisions.

import { type Kysely, sql } from 'kysely'
import { housekeepingTables } from '../housekeeping-tables.ts'
import { installationOf } from '../installation.ts'
import { migrate, migrations, noTools } from '../migrate.ts'
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
  /** Runs each phase, to show its progress. */
  during?: <T>(phase: Phase, work: (tell: Tell) => Promise<T>) => Promise<T>
  /**
   * Tables that triggers of the target fill, and views on such tables. They are compared but not
   * copied.
   */
  derived?: readonly CheckedTable[]
  /** Changes the schema of the target once it has all rows. Can run more than once. */
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
  // The state is read before the snapshot, so that no change in between goes unnoticed.
  const state = await stateOf(source)
  const snapshot = await source.snapshot()
  try {
    if (isResumed) await assertSame(target, state)
    // The source is read before the target is changed, so that a refusal leaves an empty target.
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

/** Returns whether the target has an unfinished copy. Throws when it has anything else. */
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

/** Returns the tables that got rows in between. Every change of a record adds at least an event. */
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
 * Creates the tables with the migrations of this program, and removes the rows that the migrations
 * insert. The note about the source is part of the same transaction, so a killed copy always has
 * it.
 */
async function createSchema(target: Store, state: SourceState): Promise<void> {
  await migrate(target, migrations, {
    ...noTools,
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
  // Rows that refer to each other exist by now.
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

/** Copies the list of migrations and removes the notes, so that servers accept the target. */
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
