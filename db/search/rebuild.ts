// Rebuilds the full-text indexes of a database in use, in transactions of about 20 ms with gaps in
// which others write. The old index answers queries until the new one is complete.

import { setTimeout as sleep } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'
import { searchIndex as table } from '../housekeeping-tables.ts'
import type { Db, Store } from '../store.ts'

/** Builds each full-text index beside the old one and then replaces it. */
export async function renewFullText(store: Pick<Store, 'db' | 'dialect' | 'transaction'>): Promise<void> {
  const { rebuild } = store.dialect.fullText
  const once = (work: (db: Kysely<unknown>) => Promise<void>) =>
    inSteps(store, async (db) => {
      await work(untyped(db))
      return false
    })
  await discardRebuild(store)
  for (const index of rebuild.indexes(table)) {
    await once((db) => rebuild.begin(db, table, index))
    for (let isLeft = true; isLeft; ) {
      let steps = 0
      await inSteps(store, async (db, count) => {
        isLeft = await rebuild.copyRows(untyped(db), table, index, count)
        return isLeft && ++steps < stepsInTurn
      })
      steps = 0
      await inSteps(store, async (db) => (await mergeSome(db, rebuild.merge(index))) && ++steps < stepsInTurn)
    }
    await once((db) => rebuild.finish(db, table, index))
    await discardRebuild(store)
  }
}

/**
 * Copying rows and merging segments take turns: with too many segments FTS5 would merge them inside
 * one step, which takes long. Other writes add segments too, so merging alone might never end;
 * maintenance merges the rest.
 */
const stepsInTurn = 64

/** Runs a merge statement. False when nothing is left to merge. */
async function mergeSome(db: Db, merge: string): Promise<boolean> {
  const changes = async () =>
    (await sql<{ count: number }>`select total_changes() as count`.execute(db)).rows[0]?.count ?? 0
  const before = await changes()
  await sql.raw(merge).execute(db)
  return (await changes()) - before >= 2
}

/**
 * Removes the tables and triggers of a rebuild that did not end. No other rebuild may be running.
 */
export const discardRebuild = ({ db, dialect }: Pick<Store, 'db' | 'dialect'>): Promise<void> =>
  dialect.fullText.rebuild.discard(untyped(db), table)

/** Whether a rebuild is running, or was killed and left its tables and triggers. */
export const isRebuildLeft = ({ db, dialect }: Pick<Store, 'db' | 'dialect'>): Promise<boolean> =>
  dialect.fullText.rebuild.hasLeftovers(untyped(db), table)

/** Other writes wait during a step. */
const stepMs = 20
/**
 * Longer than a process that waits for the lock pauses between two attempts (sqlite/busy-retry.ts).
 */
const gapMs = 15
const firstStepRows = 20
const maxStepRows = 500

/**
 * Runs `step` in one transaction after another until it returns false. The number of rows adapts to
 * `stepMs`.
 */
export async function inSteps(
  store: Pick<Store, 'transaction'>,
  step: (db: Db, rows: number) => Promise<boolean>,
): Promise<void> {
  for (let size = firstStepRows; ; ) {
    let took = 0
    const isMoreLeft = await store.transaction(
      async (inside) => {
        const since = performance.now()
        const answer = await step(inside, size)
        took = performance.now() - since
        return answer
      },
      { isLong: true },
    )
    if (!isMoreLeft) return
    const fitting = Math.round((size * stepMs) / Math.max(took, 0.1))
    size = Math.max(1, Math.min(maxStepRows, fitting, size * 2))
    await sleep(gapMs)
  }
}

const untyped = (db: Db): Kysely<unknown> => db as unknown as Kysely<unknown>
