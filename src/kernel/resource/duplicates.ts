// Finds possible duplicates by stored keys. Every write of a record updates the rows with its keys.
// A search therefore reads only the rows with the same keys.
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import type { Context } from '../context.ts'
import { warn } from '../context.ts'
import { chunks } from '../history/archive.ts'
import type { QueryValues } from '../query/filter.ts'
import { type MatchKey, type MatchKind, matchKinds } from '../values/match-keys.ts'
import type { Snapshot } from '../write/events.ts'
import type { AnyDefinition, ResourceParts } from './any-definition.ts'
import type { RecordReader } from './read-records.ts'

/** How much each kind of key says that two records are the same. */
const weights: Readonly<Record<MatchKind, number>> = { email: 80, phone: 50, name: 60, domain: 60 }
/** The names of the kinds of keys in a warning. */
const kindNames: Readonly<Record<MatchKind, string>> = {
  email: 'e-mail address',
  phone: 'telephone number',
  name: 'name',
  domain: 'domain',
}
/** The maximum number of possible duplicates of one record in a reply. */
const maxShown = 50
/** The maximum number of warnings of possible duplicates. */
const maxWarned = 5

const tableOf = ({ noun }: AnyDefinition): RawBuilder<unknown> => sql.table(`${noun}_match_keys`)
const ownerOf = ({ noun }: AnyDefinition): string => `${noun}_id`

interface Match {
  id: number
  kinds: MatchKind[]
  score: number
}

const textOf = (key: MatchKey): string => key.join(' ')

/** Stores the keys of a record after a write. Returns the kinds of the new keys. */
export async function saveMatchKeys(
  ctx: Context,
  d: AnyDefinition,
  { id, before, after }: { id: number; before?: Snapshot | undefined; after: Snapshot },
): Promise<Set<MatchKind>> {
  if (d.merging === undefined) return new Set()
  const [former, present] = [before ? d.merging.matchKeys(before) : [], d.merging.matchKeys(after)]
  const [known, kept] = [new Set(former.map(textOf)), new Set(present.map(textOf))]
  const added = present.filter((key) => !known.has(textOf(key)))
  for (const [kind, value] of former.filter((key) => !kept.has(textOf(key))))
    await sql`delete from ${tableOf(d)} where ${sql.ref(ownerOf(d))} = ${id} and kind = ${kind} and value = ${value}`.execute(
      ctx.db,
    )
  await addMatchKeys(ctx, d.noun, id, added)
  return new Set(added.map(([kind]) => kind))
}

/** Adds keys of a record. */
export async function addMatchKeys(
  { db }: Context,
  noun: string,
  id: number,
  keys: readonly MatchKey[],
): Promise<void> {
  if (keys.length === 0) return
  const rows = keys.map(([kind, value]) => sql`(${id}, ${kind}, ${value})`)
  await sql`insert into ${sql.table(`${noun}_match_keys`)} (${sql.ref(`${noun}_id`)}, kind, value)
    values ${sql.join(rows)} on conflict do nothing`.execute(db)
}

/** Recomputes the keys of records. */
export async function refreshMatchKeys(
  ctx: Context,
  { d }: Pick<ResourceParts, 'd'>,
  ids: readonly number[],
  read: (ids: readonly number[]) => Promise<ReadonlyMap<number, Snapshot>>,
): Promise<void> {
  for (const part of chunks(ids)) {
    const owner = sql.ref(ownerOf(d))
    // The domains of an organization are also those of its persons.
    await sql`delete from ${tableOf(d)} where ${owner} in (${sql.join(part)}) and kind <> 'domain'`.execute(ctx.db)
    for (const [id, reply] of await read(part)) await addMatchKeys(ctx, d.noun, id, d.merging?.matchKeys(reply) ?? [])
  }
}

/** The tables and the condition of two different records with the same key. */
function pairsOf(ctx: Context, { d }: Pick<ResourceParts, 'd'>, isOrdered: boolean) {
  const [own, other] = [sql.ref(`own.${ownerOf(d)}`), sql.ref(`other.${ownerOf(d)}`)]
  const seen = inSight(ctx, d)
  const isMatch = d.merging?.isMatch({ kind: sql.ref('own.kind'), value: sql.ref('own.value'), own, other })
  return {
    own,
    other,
    from: sql`from ${tableOf(d)} as own join ${tableOf(d)} as other
      on other.kind = own.kind and other.value = own.value and ${other} ${isOrdered ? sql`>` : sql`<>`} ${own}`,
    where: sql<SqlBool>`${isMatch ?? sql`1 = 1`}${seen ? sql` and ${other} in ${seen}` : sql``}`,
  }
}

/** Returns a subquery of the ids that a caller with a limited view sees. */
function inSight(ctx: Context, { idsInSight }: AnyDefinition): RawBuilder<unknown> | null {
  const parts = ctx.user?.visibleOwners ? idsInSight?.(ctx) : undefined
  return parts ? sql`(${sql.join(parts, sql` union all `)})` : null
}

/** Returns the possible duplicates that the caller sees, the most similar ones first. */
async function matchesOf(
  ctx: Context,
  parts: Pick<ResourceParts, 'd'>,
  id: number,
  { isOrdered = false, kinds = matchKinds as readonly MatchKind[] } = {},
): Promise<Match[]> {
  if (kinds.length === 0) return []
  const { own, other, from, where } = pairsOf(ctx, parts, isOrdered)
  // The expression keeps SQLite from moving a single kind to `other`, whose index it would then
  // read for all records.
  const isOfKinds = sql`own.kind || '' in (${sql.join(kinds)})`
  const { rows } = await sql<{ id: number; kind: MatchKind }>`select distinct ${other} as id, own.kind as kind ${from}
    where ${own} = ${id} and ${isOfKinds} and ${where}
    order by 1 limit ${maxShown * matchKinds.length}`.execute(ctx.db)
  const found = new Map<number, MatchKind[]>()
  for (const row of rows) found.set(Number(row.id), [...(found.get(Number(row.id)) ?? []), row.kind])
  const all = [...found].map(([other, shared]) => ({
    id: other,
    kinds: matchKinds.filter((kind) => shared.includes(kind)),
    score: Math.min(
      100,
      shared.reduce((sum, kind) => sum + weights[kind], 0),
    ),
  }))
  return all.sort((one, two) => two.score - one.score || one.id - two.id).slice(0, maxShown)
}

/** Warns of possible duplicates that have one of the new keys of a record. */
export async function warnOfDuplicates(
  ctx: Context,
  parts: ResourceParts,
  id: number,
  kinds: ReadonlySet<MatchKind>,
): Promise<void> {
  const { d, below } = parts
  const isOwn = [d.operations.create, d.operations.update, below.upsert].some((each) => each === ctx.operation)
  if (!isOwn || kinds.size === 0) return
  for (const match of (await matchesOf(ctx, parts, id, { kinds: [...kinds] })).slice(0, maxWarned))
    for (const kind of match.kinds)
      warn(ctx, d.merging?.matchedFields[kind] ?? 'name', `The ${d.noun} ${match.id} has the same ${kindNames[kind]}.`)
}

/** Returns the handlers of the lists of possible duplicates. */
export function duplicateHandlers(parts: ResourceParts, reader: RecordReader) {
  const { d, below } = parts
  const shown = async (ctx: Context, matches: readonly Match[]) => {
    const records = await reader.getMany(
      ctx,
      matches.map(({ id }) => id),
    )
    return matches.flatMap(({ id, kinds, score }) => {
      const record = records.get(id)
      return record ? [{ record, reasons: kinds, score }] : []
    })
  }
  return {
    ...(below.duplicates && {
      [below.duplicates]: async (ctx: Context, { params }: { params: { id: number } }) => {
        await reader.findRow(ctx, params.id)
        return { data: await shown(ctx, await matchesOf(ctx, parts, params.id)) }
      },
    }),
    ...(below.listDuplicates && {
      [below.listDuplicates]: async (ctx: Context, { query }: { query: QueryValues }) => {
        const { own, from, where } = pairsOf(ctx, parts, true)
        const isFirst = sql<SqlBool>`exists (select 1 ${from} where ${own} = ${sql.ref(`${d.table}.id`)} and ${where})`
        const { data, links, meta } = await reader.list(ctx, query, (rows) => rows.where(isFirst))
        const entries = []
        for (const record of data) {
          const matches = await matchesOf(ctx, parts, record.id as number, { isOrdered: true })
          entries.push({ record, duplicates: await shown(ctx, matches) })
        }
        return { data: entries, links, meta }
      },
    }),
  }
}
