// What the rows of a batch name of other records, looked up for all of them at once: tags that are there before it, and the persons of
// leads. Nothing that an import of leads does takes a person away, or makes one.
import { padToBucket } from '../../../db/compiled-queries.ts'
import type { Context } from '../../kernel/context.ts'
import { queryCached } from '../../kernel/query/statement-cache.ts'
import { fold } from '../../kernel/values/format.ts'
import type { Plan } from './apply.ts'
import { personsByAddress } from './match.ts'
import type { Line } from './run.ts'

export interface Lookups {
  /** By their folded name. */
  tags: ReadonlyMap<string, number>
  /** The first that the user of the import sees, by address. */
  persons: ReadonlyMap<string, number>
  sighted: ReadonlyMap<string, ReadonlySet<number>>
  /** What was found valid of looked-up fields, by what there is of them. */
  valid: Set<string>
}

export const addressKey = (email: string): string => fold(email.trim())

export async function lookUp(ctx: Context, { type }: Plan, lines: readonly Line[]): Promise<Lookups> {
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
    tags: await tagsOf(ctx, lines),
    persons,
    sighted: new Map([['persons', seen]]),
    valid: new Set(),
  }
}

/** Those that are there; the others are made by the first row that names them. */
async function tagsOf(ctx: Context, lines: readonly Line[]): Promise<Map<string, number>> {
  const names = [...new Set(lines.flatMap(({ draft }) => (draft.tags ?? []).map(fold)))]
  const found = new Map<string, number>()
  for (let from = 0; from < names.length; from += atOnce) {
    const keys = padToBucket(names.slice(from, from + atOnce))
    const build = () => ctx.db.selectFrom('tags').select(['id', 'name_key']).where('name_key', 'in', keys)
    const rows = await queryCached(ctx, { name: 'tags: by names', values: keys, build })
    for (const { id, name_key } of rows) found.set(name_key, id)
  }
  return found
}

const atOnce = 500
