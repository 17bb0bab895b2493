// Keeps search_index to what documents.ts says of each record. Before a write is committed its records are refreshed (`Store.deferToCommit`),
// migrations and `accord search rebuild` fill it anew, and `accord doctor` asks whether it is complete.

import { setTimeout as sleep } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'
import { padToBucket, runCompiled } from '../compiled-queries.ts'
import type { Dialect } from '../dialect.ts'
import { searchIndex } from '../housekeeping-tables.ts'
import type { Db, Store } from '../store.ts'
import { type Document, type Indexed, indexed, type Stale } from './documents.ts'

export type { Stale } from './documents.ts'

const table = searchIndex
const batch = 500

/**
 * Makes the documents of these records what they should be, and of those who quote them where that made a difference. `pause` is called
 * between two statements, for long work that lets others go on.
 */
export async function refresh(db: Db, stale: readonly Stale[], pause = async (): Promise<void> => {}): Promise<void> {
  const waiting = new Map<string, Set<number>>()
  const add = ({ entity, id }: Stale): unknown => waiting.set(entity, (waiting.get(entity) ?? new Set()).add(id))
  stale.forEach(add)
  for (const { entity, read, quotedBy } of indexed) {
    for (const ids of batches([...(waiting.get(entity) ?? [])])) {
      const changed = await keep(db, entity, ids, await read(db, { ids }), pause)
      if (changed.length > 0) (await quotedBy?.(db, changed))?.forEach(add)
    }
  }
}

/** Writes the difference between the documents there are and those that were read. Answers the ids where there was one. */
async function keep(
  db: Db,
  entity: string,
  ids: readonly number[],
  read: readonly Document[],
  pause = async (): Promise<void> => {},
): Promise<number[]> {
  const present = padToBucket(ids)
  const rows = await runCompiled(db, 'documents: present', [entity, ...present], () =>
    db
      .selectFrom(table)
      .select(['entity_id', 'title', 'subtitle', 'body'])
      .where('entity_type', '=', entity)
      .where('entity_id', 'in', present),
  )
  const known = new Map(rows.map((row) => [row.entity_id, row]))
  const wanted = new Map(read.map((document) => [document.id, document]))
  const changed: number[] = []
  const added: Document[] = []
  for (const id of ids) {
    const before = known.get(id)
    const after = wanted.get(id)
    const isSame = before && after && parts.every((part) => before[part] === after[part])
    if (isSame || (!before && !after)) continue
    await pause()
    changed.push(id)
    const row = { entity_type: entity, entity_id: id }
    if (!after)
      await runCompiled(db, 'documents: gone', Object.values(row), () =>
        db.deleteFrom(table).where((eb) => eb.and(row)),
      )
    else if (before) {
      const values = columnsOf(after)
      await runCompiled(db, 'documents: changed', [...Object.values(values), ...Object.values(row)], () =>
        db
          .updateTable(table)
          .set(values)
          .where((eb) => eb.and(row)),
      )
    } else added.push(after)
  }
  // In few statements: full text writes down what it has with each, and merges that with the rest sooner or later.
  for (const piece of portionsOf(added)) {
    await pause()
    const made = piece.map((document) => ({ entity_type: entity, entity_id: document.id, ...columnsOf(document) }))
    await runCompiled(db, 'documents: made', made.flatMap(Object.values), () => db.insertInto(table).values(made))
  }
  return changed
}

/** What full text writes down with each statement takes as long as forty short records in it. */
const maxInserted = 100
/** Nobody else goes on meanwhile: a statement takes some milliseconds. */
const maxLetters = 30_000

/** In the order in which they are, as many at a time as one statement may add. */
function* portionsOf(added: readonly Document[]): Generator<Document[]> {
  let portion: Document[] = []
  let letters = 0
  for (const document of added) {
    const own = document.title.length + document.body.length
    if (portion.length === maxInserted || (portion.length > 0 && letters + own > maxLetters)) {
      yield portion
      portion = []
      letters = 0
    }
    portion.push(document)
    letters += own
  }
  if (portion.length > 0) yield portion
}

const parts = ['title', 'subtitle', 'body'] as const

const columnsOf = ({ title, subtitle, body }: Document) => ({ title, subtitle, body })

/**
 * The same for a database in use, in transactions of some milliseconds each, with gaps in which others write: until it is done the old
 * index answers. The rows there are at the start bound the work, so it ends however much others write; they index what they write
 * themselves. Answers how many records it looked at.
 */
export async function rebuildAll(store: Pick<Store, 'db' | 'dialect'>): Promise<number> {
  await renewWords(store)
  await removeStrange(store)
  let total = 0
  for (const { entity, read } of indexed) {
    const last = await lastOf(store.db, entity)
    let after = 0
    await inSteps(store, async (db, limit) => {
      const documents = await read(db, { after, limit })
      const known = await idsOf(db, entity, { after, limit })
      // Of two lists that may be cut the shorter one says how far both go.
      const ends = [documents.map(({ id }) => id), known].map((ids) =>
        ids.length < limit ? last : (ids.at(-1) ?? last),
      )
      const until = Math.min(last, ...ends)
      const found = documents.filter(({ id }) => id <= until)
      const ids = new Set([...found.map(({ id }) => id), ...known.filter((id) => id <= until)])
      for (const some of batches([...ids])) await keep(db, entity, some, found)
      total += found.length
      after = until
      return until < last
    })
  }
  return total
}

/** The highest id among the records of an entity and what the index has of them. */
async function lastOf(db: Db, entity: Indexed['entity']): Promise<number> {
  const records = await db
    .selectFrom(entity)
    .select(({ fn }) => fn.max<number | null>('id').as('id'))
    .executeTakeFirst()
  const rows = await db
    .selectFrom(table)
    .select(({ fn }) => fn.max<number | null>('entity_id').as('id'))
    .where('entity_type', '=', entity)
    .executeTakeFirst()
  return Math.max(records?.id ?? 0, rows?.id ?? 0)
}

/** Of the rows of an entity in the index. */
async function idsOf(db: Db, entity: string, { after, limit }: { after: number; limit: number }): Promise<number[]> {
  const rows = await db
    .selectFrom(table)
    .select('entity_id')
    .where('entity_type', '=', entity)
    .where('entity_id', '>', after)
    .orderBy('entity_id')
    .limit(limit)
    .execute()
  return rows.map(({ entity_id }) => entity_id)
}

/** The indexes of words made again, each beside the old one. */
async function renewWords(store: Pick<Store, 'db' | 'dialect'>): Promise<void> {
  const { rebuild: renewal } = store.dialect.fullText
  const once = (work: (db: Kysely<unknown>) => Promise<void>) =>
    inSteps(store, async (db) => {
      await work(unknownTables(db))
      return false
    })
  const discard = () => discardRebuild(store)
  await discard()
  for (const index of renewal.indexes(table)) {
    await once((db) => renewal.begin(db, table, index))
    for (let isLeft = true; isLeft; ) {
      let steps = 0
      await inSteps(store, async (db, count) => {
        isLeft = await renewal.copyRows(unknownTables(db), table, index, count)
        return isLeft && ++steps < stepsInTurn
      })
      steps = 0
      await inSteps(store, async (db) => (await merged(db, renewal.merge(index))) && ++steps < stepsInTurn)
    }
    await once((db) => renewal.finish(db, table, index))
    await discard()
  }
}

/**
 * Rows are copied and the segments of the new index are merged in turn: with too many segments FTS5 would merge them within one step,
 * which takes long. Others add segments meanwhile, so merging alone may have no end; maintenance merges what is left.
 */
const stepsInTurn = 64

async function merged(db: Db, merge: string): Promise<boolean> {
  const changes = async () =>
    (await sql<{ count: number }>`select total_changes() as count`.execute(db)).rows[0]?.count ?? 0
  const before = await changes()
  await sql.raw(merge).execute(db)
  return (await changes()) - before >= 2
}

/** Removes the tables and triggers of a rebuild that did not end. No other rebuild may run. */
export const discardRebuild = ({ db, dialect }: Pick<Store, 'db' | 'dialect'>): Promise<void> =>
  dialect.fullText.rebuild.discard(unknownTables(db), table)

/** Whether a rebuild runs, or was killed and left its tables and triggers. */
export const isRebuildLeft = ({ db, dialect }: Pick<Store, 'db' | 'dialect'>): Promise<boolean> =>
  dialect.fullText.rebuild.hasLeftovers(unknownTables(db), table)

/** Rows of what nothing searches. */
async function removeStrange(store: Pick<Store, 'db'>): Promise<void> {
  const strange = await store.db
    .selectFrom(table)
    .select('id')
    .where(
      'entity_type',
      'not in',
      indexed.map(({ entity }) => entity),
    )
    .execute()
  let at = 0
  await inSteps(store, async (db, count) => {
    const ids = strange.slice(at, at + count).map(({ id }) => id)
    if (ids.length > 0) await db.deleteFrom(table).where('id', 'in', ids).execute()
    at += count
    return at < strange.length
  })
}

/** How long a step may take, about: nobody else writes meanwhile. */
const stepMs = 20
/** Longer than others pause who wait for the lock (sqlite/busy-retry.ts). */
const gapMs = 15
const sizes = { first: 20, most: 500 }

/** Transactions one after another, each of about as many rows as fit into a step, until one answers that it was the last. */
async function inSteps({ db }: Pick<Store, 'db'>, step: (db: Db, size: number) => Promise<boolean>): Promise<void> {
  for (let size = sizes.first; ; ) {
    let took = 0
    const goesOn = await db
      .transaction()
      .setIsolationLevel('serializable')
      .execute(async (inside) => {
        const since = performance.now()
        const answer = await step(inside, size)
        took = performance.now() - since
        return answer
      })
    if (!goesOn) return
    const fitting = Math.round((size * stepMs) / Math.max(took, 0.1))
    size = Math.max(1, Math.min(sizes.most, fitting, size * 2))
    await sleep(gapMs)
  }
}

/** Begins anew: the words of every record, as they are now. Runs in the caller's transaction. */
export async function rebuild(db: Db, dialect: Dialect): Promise<number> {
  const { fullText } = dialect
  await fullText.drop(unknownTables(db), table)
  await db.deleteFrom(table).execute()
  let total = 0
  for (const { entity, read } of indexed) {
    for (let after = 0, documents: Document[]; ; after = documents.at(-1)?.id ?? 0) {
      documents = await read(db, { after, limit: batch })
      if (documents.length === 0) break
      const rows = documents.map((each) => ({ entity_type: entity, entity_id: each.id, ...columnsOf(each) }))
      await db.insertInto(table).values(rows).execute()
      total += rows.length
    }
  }
  // Once all rows are there, which is much faster than row by row.
  await fullText.create(unknownTables(db), table)
  return total
}

/** What is wrong with the index, in a sentence; null when every record is in it once and its words can be found. */
export const finding = (db: Db, dialect: Dialect): Promise<string | null> =>
  dialect.readInThread(db, (snapshot) => findingIn(snapshot, dialect))

async function findingIn(db: Db, dialect: Dialect): Promise<string | null> {
  const rows = await db
    .selectFrom(table)
    .select(['entity_type', (eb) => eb.fn.countAll<number>().as('total')])
    .groupBy('entity_type')
    .execute()
  const kept = new Map(rows.map(({ entity_type, total }) => [entity_type, Number(total)]))
  for (const { entity } of indexed) {
    const { total } = await db
      .selectFrom(entity)
      .select(({ fn }) => fn.countAll<number>().as('total'))
      .executeTakeFirstOrThrow()
    const found = kept.get(entity) ?? 0
    if (Number(total) !== found) return `it has ${found} of ${total} ${entity}.`
  }
  const strange = [...kept.keys()].filter((entity) => !indexed.some((each) => each.entity === entity))
  if (strange.length > 0) return `it has ${strange.join(', ')}, which nothing searches.`
  const words = await dialect.fullText.findMismatch(unknownTables(db), table)
  return words === null ? null : `its words are not those of the records (${words}).`
}

const batches = (ids: readonly number[]): number[][] =>
  Array.from({ length: Math.ceil(ids.length / batch) }, (_, index) => ids.slice(index * batch, (index + 1) * batch))

const unknownTables = (db: Db): Kysely<unknown> => db as unknown as Kysely<unknown>
