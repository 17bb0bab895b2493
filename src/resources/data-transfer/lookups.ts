// Loads the related records of a whole batch: existing tags, and the persons of leads. The result
// stays valid during the batch, because an import of leads does not change persons.
import { type Bound, cachedQuery } from '../../../db/cached-query.ts'
import type { Db } from '../../../db/store.ts'
import type { Context } from '../../kernel/context.ts'
import { addressKey } from '../../kernel/values/format.ts'
import { foldedPartOf, hasFoldedKey, searchFold, textKey } from '../../kernel/values/names.ts'
import { personsByAddress } from '../persons/contacts.ts'
import type { ImportPlan } from './apply-row.ts'
import { firstIn, nameIn } from './list-cells.ts'
import { addressesOf, type Directory, loadDirectory, personNameOf } from './references.ts'
import type { RowDraft } from './row-drafts.ts'
import type { ImportLine } from './run.ts'

export interface Lookups {
  /** Ids of existing tags, by case-folded name. */
  tags: ReadonlyMap<string, number>
  /** The id of the first visible person with an e-mail address, by address. */
  persons: Map<string, number>
  /** The ids of the visible persons with a name, by case-folded name. */
  personNames: Map<string, number[]>
  /** The organization names of persons, by person id; empty if no row names an organization. */
  organizationNames: ReadonlyMap<number, string>
  directory: Directory
  sighted: ReadonlyMap<string, ReadonlySet<number>>
  /** The combinations of related ids that `validateRelated` has already accepted. */
  valid: Set<string>
}

export async function loadLookups(
  ctx: Context,
  { type, unknown }: ImportPlan,
  lines: readonly ImportLine[],
): Promise<Lookups> {
  const isLeads = type === 'leads'
  const drafts = lines.map(({ draft }) => draft)
  const addresses = isLeads ? drafts.flatMap((draft) => addressesOf(draft).map(addressKey)) : []
  const found = isLeads ? await personsByAddress(ctx, [...new Set(addresses)]) : new Map<string, number[]>()
  const named = isLeads
    ? await personsByName(
        ctx,
        drafts.map((draft) => personNameOf(draft, unknown)),
      )
    : []
  const resource = ctx.services.resources.get('persons')
  const all = [...[...found.values()].flat(), ...named.map(({ id }) => id)]
  const seen = (await resource?.visibleIds(ctx, all)) ?? new Set<number>()
  const persons = new Map<string, number>()
  for (const [address, ids] of found) {
    const id = ids.find((each) => seen.has(each))
    if (id !== undefined) persons.set(address, id)
  }
  const personNames = new Map<string, number[]>()
  for (const { id, name_key } of named) {
    const name = foldedPartOf(name_key)
    if (seen.has(id)) personNames.set(name, [...(personNames.get(name) ?? []), id])
  }
  return {
    tags: await existingTags(ctx, lines),
    persons,
    personNames,
    organizationNames: await organizationNames(ctx, drafts, [...seen]),
    directory: await loadDirectory(ctx, drafts),
    sighted: new Map([['persons', seen]]),
    valid: new Set(),
  }
}

/** Returns the persons whose name a row has without an e-mail address. */
async function personsByName(
  ctx: Context,
  given: readonly (string | undefined)[],
): Promise<{ id: number; name_key: string }[]> {
  const names = given.flatMap((name) => (name === undefined ? [] : searchFold(nameIn(firstIn(name)))))
  const found: { id: number; name_key: string }[] = []
  const asked = [...new Set(names)]
  for (let from = 0; from < asked.length; from += personsPerQuery) {
    const condition = hasFoldedKey('name_key', asked.slice(from, from + personsPerQuery))
    found.push(...(await ctx.db.selectFrom('persons').select(['id', 'name_key']).where(condition).execute()))
  }
  return found
}

async function organizationNames(
  { db }: Context,
  drafts: readonly RowDraft[],
  persons: readonly number[],
): Promise<Map<number, string>> {
  const names = new Map<number, string>()
  if (!drafts.some((draft) => draft.names.organization_name !== undefined)) return names
  for (let from = 0; from < persons.length; from += personsPerQuery) {
    const rows = await db
      .selectFrom('persons')
      .innerJoin('organizations', 'organizations.id', 'persons.organization_id')
      .select(['persons.id', 'organizations.name'])
      .where('persons.id', 'in', persons.slice(from, from + personsPerQuery))
      .execute()
    for (const { id, name } of rows) names.set(id, name)
  }
  return names
}

/**
 * Returns the ids of existing tags, by case-folded name. The first row that names a missing tag
 * creates the tag.
 */
async function existingTags(ctx: Context, lines: readonly ImportLine[]): Promise<Map<string, number>> {
  const names = [...new Set(lines.flatMap(({ draft }) => (draft.tags ?? []).map(textKey)))]
  const found = new Map<string, number>()
  for (let from = 0; from < names.length; from += tagsPerQuery) {
    const rows = await tagsWithKeys(ctx.db, names.slice(from, from + tagsPerQuery))
    for (const { id, name_key } of rows) found.set(name_key, id)
  }
  return found
}

const tagsWithKeys = cachedQuery((db: Db, keys: Bound<string[]>) =>
  db.selectFrom('tags').select(['id', 'name_key']).where('name_key', 'in', keys),
)

const tagsPerQuery = 500
const personsPerQuery = 100
