// Keeps search_index to what documents.ts says of each record. Before a write is committed its records are refreshed (`Store.putOff`),
// migrations and `accord search rebuild` fill it anew, and `accord doctor` asks whether it is complete.

import type { Kysely } from 'kysely'
import { asked, padded, pieces } from './compiled.ts'
import type { Dialect } from './dialects/dialect.ts'
import { type Document, indexed, type Stale } from './documents.ts'
import type { Db, Store } from './open.ts'
import { searchIndex } from './vocabulary.ts'

export type { Stale } from './documents.ts'

const table = searchIndex
const batch = 500

/** Makes the documents of these records what they should be, and of those who quote them where that made a difference. */
export async function refresh(db: Db, stale: readonly Stale[]): Promise<void> {
  const waiting = new Map<string, Set<number>>()
  const add = ({ entity, id }: Stale): unknown => waiting.set(entity, (waiting.get(entity) ?? new Set()).add(id))
  stale.forEach(add)
  for (const { entity, read, quotedBy } of indexed) {
    for (const ids of batches([...(waiting.get(entity) ?? [])])) {
      const changed = await keep(db, entity, ids, await read(db, { ids }))
      if (changed.length > 0) (await quotedBy?.(db, changed))?.forEach(add)
    }
  }
}

/** Writes the difference between the documents there are and those that were read. Answers the ids where there was one. */
async function keep(db: Db, entity: string, ids: readonly number[], read: readonly Document[]): Promise<number[]> {
  const present = padded(ids)
  const rows = await asked(db, 'documents: present', [entity, ...present], () =>
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
    changed.push(id)
    const row = { entity_type: entity, entity_id: id }
    if (!after)
      await asked(db, 'documents: gone', Object.values(row), () => db.deleteFrom(table).where((eb) => eb.and(row)))
    else if (before) {
      const values = columnsOf(after)
      await asked(db, 'documents: changed', [...Object.values(values), ...Object.values(row)], () =>
        db
          .updateTable(table)
          .set(values)
          .where((eb) => eb.and(row)),
      )
    } else added.push(after)
  }
  // In few statements: full text writes down what it has with each, and merges that with the rest sooner or later.
  for (const piece of pieces(added, mostInserted)) {
    const made = piece.map((document) => ({ entity_type: entity, entity_id: document.id, ...columnsOf(document) }))
    await asked(db, 'documents: made', made.flatMap(Object.values), () => db.insertInto(table).values(made))
  }
  return changed
}

const mostInserted = 100

const parts = ['title', 'subtitle', 'body'] as const

const columnsOf = ({ title, subtitle, body }: Document) => ({ title, subtitle, body })

/** The same for a database in use: until it is done the old index answers. Answers how many records are in it. */
export const rebuildAll = ({ db, dialect }: Store): Promise<number> =>
  db
    .transaction()
    .setIsolationLevel('serializable')
    .execute((inside) => rebuild(inside, dialect))

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
export async function finding(db: Db, dialect: Dialect): Promise<string | null> {
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
  const words = await dialect.fullText.finding(unknownTables(db), table)
  return words === null ? null : `its words are not those of the records (${words}).`
}

const batches = (ids: readonly number[]): number[][] =>
  Array.from({ length: Math.ceil(ids.length / batch) }, (_, index) => ids.slice(index * batch, (index + 1) * batch))

const unknownTables = (db: Db): Kysely<unknown> => db as unknown as Kysely<unknown>
