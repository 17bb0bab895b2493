// Loads the related records of a whole batch: existing tags, and the persons of leads. The result
// stays valid during the batch, because an import of leads does not change persons.
import { padToBucket } from '../../../db/compiled-queries.ts'
import type { Context } from '../../kernel/context.ts'
import { queryCached } from '../../kernel/query/statement-cache.ts'
import { fold } from '../../kernel/values/format.ts'
import type { ImportPlan } from './apply-row.ts'
import { personsByAddress } from './match-records.ts'
import type { ImportLine } from './run.ts'

export interface Lookups {
  /** Ids of existing tags, by case-folded name. */
  tags: ReadonlyMap<string, number>
  /** The id of the first visible person with an e-mail address, by address. */
  persons: ReadonlyMap<string, number>
  sighted: ReadonlyMap<string, ReadonlySet<number>>
  /** The combinations of related ids that `validateRelated` has already accepted. */
  valid: Set<string>
}

export const addressKey = (email: string): string => fold(email.trim())

export async function loadLookups(ctx: Context, { type }: ImportPlan, lines: readonly ImportLine[]): Promise<Lookups> {
  const addresses = lines.flatMap(({ draft: { personEmail } }) => (personEmail ? [addressKey(personEmail)] : []))
  const found = type === 'leads' ? await personsByAddress(ctx, [...new Set(addresses)]) : new Map<string, number[]>()
  const resource = ctx.services.resources.get('persons')
  const seen = (await resource?.visibleIds(ctx, [...found.values()].flat())) ?? new Set<number>()
  const persons = new Map<string, number>()
  for (const [address, ids] of found) {
    const id = ids.find((each) => seen.has(each))
    if (id !== undefined) persons.set(address, id)
  }
  return {
    tags: await existingTags(ctx, lines),
    persons,
    sighted: new Map([['persons', seen]]),
    valid: new Set(),
  }
}

/**
 * Returns the ids of existing tags, by case-folded name. The first row that names a missing tag
 * creates the tag.
 */
async function existingTags(ctx: Context, lines: readonly ImportLine[]): Promise<Map<string, number>> {
  const names = [...new Set(lines.flatMap(({ draft }) => (draft.tags ?? []).map(fold)))]
  const found = new Map<string, number>()
  for (let from = 0; from < names.length; from += tagsPerQuery) {
    const keys = padToBucket(names.slice(from, from + tagsPerQuery))
    const build = () => ctx.db.selectFrom('tags').select(['id', 'name_key']).where('name_key', 'in', keys)
    const rows = await queryCached(ctx, { name: 'tags: by names', values: keys, build })
    for (const { id, name_key } of rows) found.set(name_key, id)
  }
  return found
}

const tagsPerQuery = 500
