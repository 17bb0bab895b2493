// Rebuilds the full-text indexes of a database in use, in transactions of about 20 ms. Other writes
// run between these transactions. Queries use the old index until the new index is complete.

import { setTimeout as sleep } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'
import { searchIndexTable as table } from '../housekeeping-tables.ts'
import type { Db, Store } from '../store.ts'

interface CopyState {
  steps: number
  /** Whether rows are left to copy. */
  isLeft: boolean
}

/** Builds each full-text index beside the old index and then replaces the old index. */
export async function renewFullText(store: Pick<Store, 'db' | 'dialect' | 'transaction'>): Promise<void> {
  const { rebuild } = store.dialect.fullText
  const once = (work: (db: Kysely<unknown>) => Promise<void>) =>
    runInSteps(store, null, async (db) => {
      await work(untyped(db))
      return { state: null, isMoreLeft: false }
    })
  await discardRebuild(store)
  for (const index of rebuild.indexes(table)) {
    await once((db) => rebuild.begin(db, table, index))
    for (let isLeft = true; isLeft; ) {
      const first: CopyState = { steps: 0, isLeft: true }
      const last = await runInSteps(store, first, async (db, count, { steps }) => {
        const state = { steps: steps + 1, isLeft: await rebuild.copyRows(untyped(db), table, index, count) }
        return { state, isMoreLeft: state.isLeft && state.steps < stepsInTurn }
      })
      isLeft = last.isLeft
      await runInSteps(store, 0, async (db, _count, steps) => {
        const isMoreLeft = await mergeSome(db, rebuild.merge(index))
        return { state: steps + 1, isMoreLeft: isMoreLeft && steps + 1 < stepsInTurn }
      })
    }
    await once((db) => rebuild.finish(db, table, index))
    await discardRebuild(store)
  }
}

/**
 * The maximum number of copy steps in a row, and of merge steps in a row. Without merge steps, FTS5
 * would merge many segments inside one copy step, which takes long. Without a limit, merging might
 * never end, because other writes add segments. Maintenance merges the rest.
 */
const stepsInTurn = 64

/** Runs a merge statement. Returns false when nothing is left to merge. */
async function mergeSome(db: Db, merge: string): Promise<boolean> {
  const changes = async () =>
    (await sql<{ count: number }>`select total_changes() as count`.execute(db)).rows[0]?.count ?? 0
  const before = await changes()
  await sql.raw(merge).execute(db)
  return (await changes()) - before >= 2
}

/**
 * Removes the tables and triggers of an unfinished rebuild, and replaced indexes. Must not be
 * called while another process rebuilds the index.
 */
export const discardRebuild = ({ db, dialect }: Pick<Store, 'db' | 'dialect'>): Promise<void> =>
  dialect.fullText.rebuild.discard(untyped(db), table)

/**
 * Returns whether tables or triggers of a rebuild exist, either of a running or of a killed
 * rebuild.
 */
export const isRebuildLeft = ({ db, dialect }: Pick<Store, 'db' | 'dialect'>): Promise<boolean> =>
  dialect.fullText.rebuild.hasLeftovers(untyped(db), table)

/** The target duration of a step in milliseconds. Other writes wait during a step. */
const stepMs = 20
/**
 * The pause between two steps in milliseconds. It must be longer than the pause of a waiting
 * process between two attempts to get the lock (sqlite/busy-retry.ts).
 */
const gapMs = 15
const firstStepRows = 20
const maxStepRows = 500

interface StepResult<State> {
  /** The state for the next step, such as the id of the last row. */
  state: State
  isMoreLeft: boolean
}

/**
 * Calls `step` in one transaction after another until nothing is left, and returns the last state.
 * Each step gets the state that the last committed step returned. A step must not keep a state of
 * its own, because it runs again when its transaction conflicts with another one. The number of
 * rows adapts, so that a step takes about `stepMs`.
 */
export async function runInSteps<State>(
  store: Pick<Store, 'transaction'>,
  first: State,
  step: (db: Db, rows: number, state: State) => Promise<StepResult<State>>,
): Promise<State> {
  let state = first
  for (let size = firstStepRows; ; ) {
    let took = 0
    const done = await store.transaction(
      async (inside) => {
        const since = performance.now()
        const result = await step(inside, size, state)
        took = performance.now() - since
        return result
      },
      { isLong: true },
    )
    state = done.state
    if (!done.isMoreLeft) return state
    const fitting = Math.round((size * stepMs) / Math.max(took, 0.1))
    size = Math.max(1, Math.min(maxStepRows, fitting, size * 2))
    await sleep(gapMs)
  }
}

export const untyped = (db: Db): Kysely<unknown> => db as unknown as Kysely<unknown>
