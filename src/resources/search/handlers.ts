// Search over all records. The index (db/search/search-index.ts) finds and ranks
// records. The resource of each record type then removes the records that the caller may not see.
import { type Expression, type RawBuilder, sql } from 'kysely'
import type { FullTextHit } from '../../../db/dialect.ts'
import { documentIdOf } from '../../../db/search/document-ids.ts'
import { operations } from '../../contract/operations.gen.ts'
import { pathTo } from '../../contract/paths.ts'
import type { Schema } from '../../contract/types.ts'
import { assertCanCall, type Context, canCall } from '../../kernel/context.ts'
import { invalid } from '../../kernel/errors.ts'
import type { Handlers } from '../../kernel/handler.ts'
import type { Resource } from '../../kernel/resource/define-resource.ts'
import { hasUnspaced, queryParts, searchFold, searchPhrase } from '../../kernel/values/names.ts'
import { leadsWithUnreadableAddresses } from '../leads/person.ts'
import { searchedNumber } from '../persons/phone-numbers.ts'

type Hit = Schema<'SearchHit'>
type Type = Hit['type']

/**
 * The searchable resources, by record type. Each key is also the name of the resource in API paths.
 */
export type Searched = Partial<
  Record<Type, Pick<Resource<unknown, never>, 'listOperation' | 'getOperation' | 'visibleIds' | 'allInSight' | 'query'>>
>

interface Candidate {
  /** The id of the row in `search_index`; `entity_id` is the id of the record. */
  id: number
  entity_type: string
  entity_id: number
  title: string
  subtitle: string
  score: number
}

/**
 * The number of best matches that the first pass checks for visibility. Most searches need no
 * second pass.
 */
const firstWindow = 500

/**
 * Returns the record types to search. Throws 403 when the caller may not list one of the `named`
 * types.
 */
function typesOf(ctx: Context, searched: Searched, named: readonly Type[] | undefined): Type[] {
  for (const type of named ?? []) {
    const resource = searched[type]
    if (resource) assertCanCall(ctx, resource.listOperation)
  }
  const types = Object.entries(searched).flatMap(([type, { listOperation: lists }]) =>
    canCall(ctx, lists) ? [type as Type] : [],
  )
  return named ? types.filter((type) => named.includes(type)) : types
}

interface SearchQuery {
  phrases: string[][]
  types: Type[]
  among?: Expression<unknown>
  limit: number
}

/** Returns the matching rows of the index, best match first. */
async function candidates(ctx: Context, search: SearchQuery): Promise<Candidate[]> {
  const hits = ctx.services.store.dialect.fullText.hits('search_index', search)
  if (hits === null) return []
  return ctx.db
    .selectFrom('search_index')
    .innerJoin(sql<FullTextHit>`(${hits})`.as('hit'), (join) => join.onRef('hit.id', '=', 'search_index.id'))
    .select(['search_index.id', 'entity_type', 'entity_id', 'title', 'subtitle', 'hit.score'])
    .orderBy('hit.score', 'desc')
    .orderBy('hit.id', 'desc')
    .execute()
}

/**
 * Searches only among the records that the caller may see. This second pass serves callers who may
 * see few of the best matches.
 */
async function candidatesInSight(ctx: Context, searched: Searched, search: SearchQuery): Promise<Candidate[]> {
  const open: Type[] = []
  const limited: RawBuilder<unknown>[] = []
  for (const type of search.types) {
    const own = searched[type]?.allInSight(ctx)
    if (own) limited.push(sql`select ${documentIdOf(type, sql.ref('own.id'))} from ${own.as('own')}`)
    else open.push(type)
  }
  const among = limited.length === 0 ? undefined : sql`(${sql.join(limited, sql` union all `)})`
  return candidates(ctx, { ...search, types: open, ...(among && { among }) })
}

/** Returns the candidates that the caller may see, converted to search hits. */
async function visible(
  ctx: Context,
  searched: Searched,
  words: readonly string[],
  found: readonly Candidate[],
): Promise<Hit[]> {
  const seen = new Map<string, Set<number>>()
  for (const [type, { visibleIds: see }] of Object.entries(searched)) {
    const ids = found.filter(({ entity_type }) => entity_type === type).map(({ entity_id }) => entity_id)
    if (ids.length === 0) continue
    const inSight = await see(ctx, ids)
    for (const id of type === 'leads' ? await unreadable(ctx, searched, words, inSight) : []) inSight.delete(id)
    seen.set(type, inSight)
  }
  return found.flatMap(({ entity_type, entity_id: id, title, subtitle, score }): Hit[] => {
    const type = entity_type as Type
    const shows = searched[type]?.getOperation
    if (!shows || !seen.get(type)?.has(id)) return []
    const url = ctx.baseUrl + pathTo(shows, id)
    return [{ type, id, title, subtitle, url, score: Math.round(score * 1e6) / 1e6 }]
  })
}

/**
 * Returns the ids of leads that match only through an address of their person that the caller may
 * not read. The `q` filter of the lead list does not find these leads either.
 */
async function unreadable(
  ctx: Context,
  { leads }: Searched,
  words: readonly string[],
  ids: ReadonlySet<number>,
): Promise<number[]> {
  const suspects = await leadsWithUnreadableAddresses(ctx, [...ids])
  if (!leads || suspects.length === 0) return []
  const rows = (await leads.query(ctx, { q: words.join(' ') })).clearSelect().clearOrderBy()
  const found = await rows.select('leads.id').where('leads.id', 'in', suspects).execute()
  const readable = new Set(found.map(({ id }) => id as number))
  return suspects.filter((id) => !readable.has(id))
}

export const searchHandlers = (searched: () => Searched) =>
  ({
    searchRecords: async (ctx, { query: { q, types: named, per_page: size = 10 } }) => {
      const types = typesOf(ctx, searched(), named)
      // One letter would find most of the records.
      if ([...searchFold(q)].length < 2 && !hasUnspaced(searchFold(q)))
        throw invalid({ 'query.q': ['Must have at least 2 characters.'] })
      const words = queryParts(q)
      const phrases = [words.map(searchPhrase).filter(Boolean), searchedNumber(q, ctx).slice(-1)]
      const first = await candidates(ctx, { phrases, types, limit: firstWindow })
      let data = await visible(ctx, searched(), words, first)
      let isMore = first.length === firstWindow
      // Each round reads more, because leads with unreadable addresses may fill the one before.
      for (let limit = firstWindow; data.length < size && isMore; limit *= 8) {
        const found = await candidatesInSight(ctx, searched(), { phrases, types, limit })
        data = await visible(ctx, searched(), words, found)
        isMore = found.length >= limit
      }
      data = data.slice(0, size)
      const { length } = data
      return {
        data,
        meta: {
          current_page: 1,
          from: length > 0 ? 1 : null,
          last_page: null,
          path: ctx.baseUrl + operations.searchRecords.path,
          per_page: size,
          to: length > 0 ? length : null,
          total: null,
          is_total_exact: null,
        },
      }
    },
  }) satisfies Partial<Handlers>
