// Loads the records that the rows of a batch name: existing tags, the persons of leads, and small
// tables. The result stays valid during the batch, because an import of leads changes no persons.
import { type Bound, cachedQuery } from '../../../../db/cached-query.ts'
import type { Db } from '../../../../db/store.ts'
import type { Context } from '../../../kernel/context.ts'
import { addressKey } from '../../../kernel/values/format.ts'
import { foldedPartOf, hasFoldedKey, searchFold, textKey } from '../../../kernel/values/names.ts'
import { personsByAddress } from '../../persons/contacts.ts'
import { defaultPipelineId } from '../../pipelines/moves.ts'
import type { RowDraft } from '../draft-rows/row-drafts.ts'
import { addressIn, firstIn, nameIn, splitAddresses } from '../read-cells/list-cells.ts'
import type { ImportPlan } from '../settings.ts'

export interface Named {
  id: number
  name: string
}
export interface NamedStage extends Named {
  code: string
  lead_pipeline_id: number
}

/** The records that rows can name, in the order of their ids. */
export interface Directory {
  users: readonly (Named & { email: string })[]
  pipelines: readonly Named[]
  stages: readonly NamedStage[]
  sources: readonly Named[]
  types: readonly Named[]
  defaultPipeline: number
  /** The pipeline of each stored lead that a row changes. */
  pipelineOfLead: ReadonlyMap<number, number>
  now: string
}

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
  /** The combinations of related ids that `validateRelated` has already accepted. */
  valid: Set<string>
}

export async function loadLookups(
  ctx: Context,
  { type, unknown }: ImportPlan,
  drafts: readonly RowDraft[],
): Promise<Lookups> {
  const isLeads = type === 'leads'
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
    tags: await existingTags(ctx, drafts),
    persons,
    personNames,
    organizationNames: await organizationNames(ctx, drafts, [...seen]),
    directory: await loadDirectory(ctx, drafts),
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
async function existingTags(ctx: Context, drafts: readonly RowDraft[]): Promise<Map<string, number>> {
  const names = [...new Set(drafts.flatMap(({ tags = [] }) => tags.map(textKey)))]
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

const empty: Directory = {
  users: [],
  pipelines: [],
  stages: [],
  sources: [],
  types: [],
  defaultPipeline: 0,
  pipelineOfLead: new Map(),
  now: '',
}

/** Loads the small tables whose records the rows of a batch name. */
export async function loadDirectory(ctx: Context, drafts: readonly RowDraft[]): Promise<Directory> {
  const used = new Set(drafts.flatMap(({ names }) => Object.keys(names)))
  if (used.size === 0) return empty
  const { db } = ctx
  const isStaged = used.has('stage') || used.has('status') || used.has('pipeline')
  const users = used.has('user')
    ? await db.selectFrom('users').select(['id', 'name', 'email']).where('is_active', '=', 1).orderBy('id').execute()
    : []
  const vocabulary = async (
    table: 'lead_pipelines' | 'lead_sources' | 'lead_types',
    isUsed: boolean,
  ): Promise<Named[]> => (isUsed ? db.selectFrom(table).select(['id', 'name']).orderBy('id').execute() : [])
  const stages = db.selectFrom('lead_pipeline_stages').select(['id', 'name', 'code', 'lead_pipeline_id'])
  return {
    users,
    pipelines: await vocabulary('lead_pipelines', isStaged),
    stages: isStaged ? await stages.orderBy('sort_order').execute() : [],
    sources: await vocabulary('lead_sources', used.has('source')),
    types: await vocabulary('lead_types', used.has('type')),
    defaultPipeline: isStaged ? await defaultPipelineId(ctx) : 0,
    pipelineOfLead: isStaged ? await pipelinesOfLeads(ctx, drafts) : new Map(),
    now: ctx.time.toISOString(),
  }
}

async function pipelinesOfLeads({ db }: Context, drafts: readonly RowDraft[]): Promise<Map<number, number>> {
  const ids = drafts.flatMap(({ id }) => (typeof id === 'number' ? id : []))
  if (ids.length === 0) return new Map()
  const rows = await db.selectFrom('leads').select(['id', 'lead_pipeline_id']).where('id', 'in', ids).execute()
  return new Map(rows.map(({ id, lead_pipeline_id }) => [id, lead_pipeline_id]))
}

/** Returns the addresses of a lead's person: those of `person_email`, and that beside the name. */
export function addressesOf({ personEmail, names }: RowDraft): string[] {
  const beside = names.person === undefined ? '' : addressIn(firstIn(names.person))
  return [...(personEmail ? splitAddresses(personEmail) : []), ...(beside.includes('@') ? [beside] : [])]
}

/**
 * Returns the name of a lead's person. Deals of other programs may have an organization and no
 * person. The lead then gets a person with the name of the organization.
 */
export function personNameOf({ names, body, personEmail, id }: RowDraft, treatment: ImportPlan['unknown']) {
  const hasNone = names.person === undefined && personEmail === undefined && body.person_id === undefined
  // A stored lead keeps its person.
  const isAlone = hasNone && (id === undefined || id === null)
  return isAlone && treatment === 'create' ? names.organization_name : names.person
}
