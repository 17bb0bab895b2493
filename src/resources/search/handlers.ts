// One question to all records (DOMAIN 22.1). The index (db/search.ts) knows which records match and how well; which of them the
// caller comes to know is asked of each resource, so that nothing is found that could not be listed.
import { sql } from 'kysely'
import type { FullTextHit } from '../../../db/dialects/dialect.ts'
import { operations } from '../../contract/operations.gen.ts'
import type { Schema } from '../../contract/types.ts'
import { type Context, may, requireCall } from '../../kernel/context.ts'
import { fold } from '../../kernel/format.ts'
import type { HandlersFor } from '../../kernel/handler.ts'
import type { Resource } from '../../kernel/resource.ts'

type Hit = Schema<'SearchHit'>
type Type = Hit['type']

/** What can be searched, by its name in paths. */
export type Searched = Partial<Record<Type, Pick<Resource<unknown, never>, 'lists' | 'shows' | 'seen'>>>

interface Candidate {
  entity_type: string
  entity_id: number
  title: string
  subtitle: string
  score: number
}

/** How many candidates are looked at: as a rule the first few are enough, and who sees little is not asked for long. */
const firstWindow = 500
const growth = 10
/** Ids a resource is asked about at once. */
const batch = 500

/** The types to search. Throws 403 for one that was named and may not be listed. */
function typesOf(ctx: Context, searched: Searched, named: readonly Type[] | undefined): Type[] {
  for (const type of named ?? []) {
    const resource = searched[type]
    if (resource) requireCall(ctx, resource.lists)
  }
  const types = Object.entries(searched).flatMap(([type, { lists }]) => (may(ctx, lists) ? [type as Type] : []))
  return named ? types.filter((type) => named.includes(type)) : types
}

/** Everything that matches, best first, in windows that grow, so that the whole costs little more than its last part. */
async function* candidates(ctx: Context, words: string[], types: Type[]): AsyncGenerator<Candidate[]> {
  const { fullText } = ctx.services.store.dialect
  let offset = 0
  for (let size = firstWindow; ; size *= growth) {
    const hits = fullText.hits('search_index', { words, types, limit: size, offset })
    if (hits === null) return
    const rows = await ctx.db
      .selectFrom('search_index')
      .innerJoin(sql<FullTextHit>`(${hits})`.as('hit'), (join) => join.onRef('hit.id', '=', 'search_index.id'))
      .select(['entity_type', 'entity_id', 'title', 'subtitle', 'hit.score'])
      .orderBy('hit.score', 'desc')
      .orderBy('hit.id', 'desc')
      .execute()
    for (let at = 0; at < rows.length; at += batch) yield rows.slice(at, at + batch)
    if (rows.length < size) return
    offset += size
  }
}

/** Those of the candidates that the caller may see. */
async function visible(ctx: Context, searched: Searched, found: readonly Candidate[]): Promise<Hit[]> {
  const seen = new Map<string, Set<number>>()
  for (const [type, { seen: see }] of Object.entries(searched)) {
    const ids = found.filter(({ entity_type }) => entity_type === type).map(({ entity_id }) => entity_id)
    if (ids.length > 0) seen.set(type, await see(ctx, ids))
  }
  return found.flatMap(({ entity_type, entity_id: id, title, subtitle, score }): Hit[] => {
    const type = entity_type as Type
    const shows = searched[type]?.shows
    if (!shows || !seen.get(type)?.has(id)) return []
    const url = ctx.base + shows.path.replace('{id}', String(id))
    return [{ type, id, title, subtitle, url, score: Math.round(score * 1e6) / 1e6 }]
  })
}

export const searchHandlers = (searched: () => Searched): HandlersFor<'searchRecords'> => ({
  searchRecords: async (ctx, { query: { q, types: named, per_page: size = 10 } }) => {
    const types = typesOf(ctx, searched(), named)
    const words = [...new Set(fold(q).split(/\s+/).filter(Boolean))]
    const data: Hit[] = []
    for await (const found of candidates(ctx, words, types)) {
      data.push(...(await visible(ctx, searched(), found)).slice(0, size - data.length))
      if (data.length >= size) break
    }
    const { length } = data
    return {
      data,
      meta: {
        current_page: 1,
        from: length > 0 ? 1 : null,
        last_page: null,
        path: ctx.base + operations.searchRecords.path,
        per_page: size,
        to: length > 0 ? length : null,
        total: null,
      },
    }
  },
})
