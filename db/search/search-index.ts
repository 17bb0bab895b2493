// Keeps the table search_index up to date. Each record has one document (documents.ts). A write
// updates the documents of its records before its commit. Migrations and `accord search rebuild`
// rewrite all documents, and `accord doctor` checks that no document is missing.

import { sql } from 'kysely'
import { type Bound, cachedQuery, perEngine, runCached } from '../cached-query.ts'
import type { Dialect } from '../dialect.ts'
import { searchIndexTable as table } from '../housekeeping-tables.ts'
import { isIn } from '../long-lists.ts'
import type { Db, RecordRef, Store } from '../store.ts'
import { documentId } from './document-ids.ts'
import type { SearchDocument, SearchDocumentSource } from './documents.ts'
import { renewFullText, runInSteps, untyped } from './rebuild.ts'

/** Stores, in the transaction of `db`, that the documents of these records must be updated. */
export type Defer = (db: Db, records: readonly RecordRef[]) => Promise<void>

/** The maximum number of documents that a write updates because they quote its records. */
export const maxQuoting = 200

export interface SearchIndex {
  /**
   * Updates the documents of the records, and the documents that contain fields of a record whose
   * document changed. `defer` gets the records of the second kind instead if there are many.
   */
  update(db: Db, records: readonly RecordRef[], defer?: Defer): Promise<void>
  /** Rewrites every document in the caller's transaction. Returns the number of records. */
  rebuild(db: Db, dialect: Dialect): Promise<number>
  /**
   * Rebuilds the index while other connections read and write, in transactions of about 20 ms.
   * Returns the number of records read.
   */
  rebuildOnline(store: Pick<Store, 'db' | 'dialect' | 'transaction'>): Promise<number>
  /**
   * Returns the problem of the index as a sentence. Returns null when each entity has as many
   * documents as records, and the full-text index agrees with the documents.
   */
  findProblem(db: Db, dialect: Dialect): Promise<string | null>
}

const batch = 500

export function createSearchIndex(sources: readonly SearchDocumentSource[]): SearchIndex {
  const ordered = quotedFirst(sources)
  return {
    update: (db, records, defer) => update(db, ordered, records, defer),
    rebuild: (db, dialect) => rebuild(db, dialect, ordered),
    async rebuildOnline(store) {
      await renewFullText(store)
      await removeUnknownEntities(store, ordered)
      let total = 0
      for (const source of ordered) total += await compareAll(store, source)
      return total
    },
    findProblem: (db, dialect) => dialect.readInThread(db, (snapshot) => findProblem(snapshot, dialect, ordered)),
  }
}

/**
 * Sorts the sources so that an entity comes before the entities that quote it. One pass then
 * updates the documents of quoted and quoting records.
 */
function quotedFirst(sources: readonly SearchDocumentSource[]): SearchDocumentSource[] {
  const ordered: SearchDocumentSource[] = []
  const visit = (source: SearchDocumentSource): void => {
    if (ordered.includes(source)) return
    for (const quoted of sources) if (source.quotes?.[quoted.entity] !== undefined) visit(quoted)
    ordered.push(source)
  }
  sources.forEach(visit)
  return ordered
}

async function update(
  db: Db,
  sources: readonly SearchDocumentSource[],
  records: readonly RecordRef[],
  defer: Defer | undefined,
): Promise<void> {
  const waiting = new Map<string, Set<number>>()
  const add = ({ entity, id }: RecordRef): unknown => waiting.set(entity, (waiting.get(entity) ?? new Set()).add(id))
  records.forEach(add)
  for (const { entity, read } of sources) {
    for (const ids of batches([...(waiting.get(entity) ?? [])])) {
      const changed = await writeDifference(db, entity, ids, await read(db, { ids }))
      const quoting = changed.length > 0 ? await quotersOf(db, sources, entity, changed) : []
      if (defer && quoting.length > maxQuoting) await defer(db, quoting)
      else quoting.forEach(add)
    }
  }
}

/**
 * Returns the records whose documents contain fields of the given records of the entity `quoted`.
 */
async function quotersOf(
  db: Db,
  sources: readonly SearchDocumentSource[],
  quoted: string,
  ids: readonly number[],
): Promise<RecordRef[]> {
  const found: RecordRef[] = []
  for (const { entity, quotes } of sources) {
    const column = quotes?.[quoted]
    if (column === undefined) continue
    const query = sql<{
      id: number
    }>`select id from ${sql.table(entity)} where ${isIn(sql.ref(column), ids)}`
    for (const { id } of (await query.execute(db)).rows) found.push({ entity, id })
  }
  return found
}

/**
 * Makes the stored documents of `ids` equal to those in `read`. Returns the ids whose documents
 * changed.
 */
async function writeDifference(
  db: Db,
  entity: string,
  ids: readonly number[],
  read: readonly SearchDocument[],
): Promise<number[]> {
  const stored = await storedDocuments(db, entity, ids)
  const wanted = new Map(read.map((document) => [document.id, document]))
  const changed: number[] = []
  const removed: SearchDocument[] = []
  const updated: SearchDocument[] = []
  const added: SearchDocument[] = []
  // In the order of the ids, because FTS5 begins a segment whenever the ids of rows descend.
  for (const id of [...ids].sort((one, other) => one - other)) {
    const before = stored.get(id)
    const after = wanted.get(id)
    const isSame = before && after && parts.every((part) => before[part] === after[part])
    if (isSame || (!before && !after)) continue
    changed.push(id)
    if (before && after) updated.push(after)
    else if (after) added.push(after)
    else if (before) removed.push(before)
  }
  for (const portion of portionsOf(removed))
    await deleteDocuments(
      db,
      entity,
      portion.map(({ id }) => id),
    )
  for (const portion of [...portionsOf(updated), ...portionsOf(added)]) await writeDocuments(db, entity, portion)
  return changed
}

/** The statements that write documents, by the number of documents. */
const writing = perEngine(100)

async function writeDocuments(db: Db, entity: string, some: readonly SearchDocument[]): Promise<void> {
  const rows = some.map((document) => documentRow(entity, document))
  await runCached(db, { statements: writing(db), key: String(rows.length) }, rows.flatMap(Object.values), () =>
    db
      .insertInto(table)
      .values(rows)
      .onConflict((conflict) =>
        conflict.column('id').doUpdateSet(({ ref }) => ({
          title: ref('excluded.title'),
          subtitle: ref('excluded.subtitle'),
          body: ref('excluded.body'),
        })),
      ),
  )
}

const documents = cachedQuery((db: Db, entity: Bound<string>, ids: Bound<number[]>) =>
  db
    .selectFrom(table)
    .select(['entity_id', 'title', 'subtitle', 'body'])
    .where('entity_type', '=', entity)
    .where('entity_id', 'in', ids),
)

const storedDocuments = async (db: Db, entity: string, ids: readonly number[]) =>
  new Map((await documents(db, entity, ids)).map(({ entity_id: id, ...parts }) => [id, { id, ...parts }]))

const deleteDocuments = cachedQuery((db: Db, entity: Bound<string>, ids: Bound<number[]>) =>
  db.deleteFrom(table).where('entity_type', '=', entity).where('entity_id', 'in', ids),
)

/**
 * The maximum number of documents in one statement. FTS5 writes a segment for each statement, which
 * takes as long as indexing forty short documents, so a statement writes many documents.
 */
const maxAtOnce = 100
/**
 * The maximum number of characters in one statement. This many block the event loop for some
 * milliseconds.
 */
const maxCharacters = 30_000

function* portionsOf(documents: readonly SearchDocument[]): Generator<SearchDocument[]> {
  let portion: SearchDocument[] = []
  let characters = 0
  for (const document of documents) {
    const own = document.title.length + document.body.length
    if (portion.length === maxAtOnce || (portion.length > 0 && characters + own > maxCharacters)) {
      yield portion
      portion = []
      characters = 0
    }
    portion.push(document)
    characters += own
  }
  if (portion.length > 0) yield portion
}

const parts = ['title', 'subtitle', 'body'] as const

const documentRow = (entity: string, { id, title, subtitle, body }: SearchDocument) => ({
  id: documentId(entity, id),
  entity_type: entity,
  entity_id: id,
  title,
  subtitle,
  body,
})

async function rebuild(db: Db, dialect: Dialect, sources: readonly SearchDocumentSource[]): Promise<number> {
  const { fullText } = dialect
  await fullText.drop(untyped(db), table)
  await db.deleteFrom(table).execute()
  let total = 0
  for (const { entity, read } of sources) {
    for (let after = 0, documents: SearchDocument[]; ; after = documents.at(-1)?.id ?? 0) {
      documents = await read(db, { after, limit: batch })
      if (documents.length === 0) break
      const rows = documents.map((each) => documentRow(entity, each))
      await db.insertInto(table).values(rows).execute()
      total += rows.length
    }
  }
  // The index is created after the rows are inserted. One build over all rows is much faster than
  // an index update for each row.
  await fullText.create(untyped(db), table)
  return total
}

/**
 * Compares the documents of an entity with its records in steps and corrects the documents. Stops
 * at the id that is the highest at the start, because writes of newer records store their own
 * documents. Returns the number of records read.
 */
async function compareAll(
  store: Pick<Store, 'db' | 'transaction'>,
  { entity, read }: SearchDocumentSource,
): Promise<number> {
  const last = await highestId(store.db, entity)
  const { total } = await runInSteps(store, { after: 0, total: 0 }, async (db, limit, { after, total }) => {
    const documents = await read(db, { after, limit })
    const indexed = await indexedIds(db, entity, { after, limit })
    // A list with `limit` entries is complete only up to its last id. So this step compares ids up
    // to the lower of the two last ids.
    const ends = [documents.map(({ id }) => id), indexed].map((ids) =>
      ids.length < limit ? last : (ids.at(-1) ?? last),
    )
    const until = Math.min(last, ...ends)
    const found = documents.filter(({ id }) => id <= until)
    const ids = new Set([...found.map(({ id }) => id), ...indexed.filter((id) => id <= until)])
    for (const some of batches([...ids])) await writeDifference(db, entity, some, found)
    return { state: { after: until, total: total + found.length }, isMoreLeft: until < last }
  })
  return total
}

/** Returns the highest id among the records of an entity and their documents. */
async function highestId(db: Db, entity: string): Promise<number> {
  const records = await sql<{ id: number | null }>`select max(id) as id from ${sql.table(entity)}`.execute(db)
  const documents = await db
    .selectFrom(table)
    .select(({ fn }) => fn.max<number | null>('entity_id').as('id'))
    .where('entity_type', '=', entity)
    .executeTakeFirst()
  return Math.max(records.rows[0]?.id ?? 0, documents?.id ?? 0)
}

async function indexedIds(
  db: Db,
  entity: string,
  { after, limit }: { after: number; limit: number },
): Promise<number[]> {
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

/** Removes documents of entities that are no longer indexed. */
async function removeUnknownEntities(
  store: Pick<Store, 'db' | 'transaction'>,
  sources: readonly SearchDocumentSource[],
): Promise<void> {
  const unknown = await store.db
    .selectFrom(table)
    .select('id')
    .where(
      'entity_type',
      'not in',
      sources.map(({ entity }) => entity),
    )
    .execute()
  await runInSteps(store, 0, async (db, count, at) => {
    const ids = unknown.slice(at, at + count).map(({ id }) => id)
    if (ids.length > 0) await db.deleteFrom(table).where('id', 'in', ids).execute()
    return { state: at + count, isMoreLeft: at + count < unknown.length }
  })
}

async function findProblem(db: Db, dialect: Dialect, sources: readonly SearchDocumentSource[]): Promise<string | null> {
  const rows = await db
    .selectFrom(table)
    .select(['entity_type', (eb) => eb.fn.countAll<number>().as('total')])
    .groupBy('entity_type')
    .execute()
  const documents = new Map(rows.map(({ entity_type, total }) => [entity_type, Number(total)]))
  for (const { entity } of sources) {
    const counted = await sql<{ total: number }>`select count(*) as total from ${sql.table(entity)}`.execute(db)
    const total = Number(counted.rows[0]?.total)
    const found = documents.get(entity) ?? 0
    if (total !== found) return `it has ${found} of ${total} ${entity}.`
  }
  const unknown = [...documents.keys()].filter((entity) => !sources.some((each) => each.entity === entity))
  if (unknown.length > 0) return `it has ${unknown.join(', ')}, which no search covers.`
  const words = await dialect.fullText.findMismatch(untyped(db), table)
  return words === null ? null : `its words are not those of the records (${words}).`
}

const batches = (ids: readonly number[]): number[][] =>
  Array.from({ length: Math.ceil(ids.length / batch) }, (_, index) => ids.slice(index * batch, (index + 1) * batch))
