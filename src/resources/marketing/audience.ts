// The audience of a campaign: all persons, the persons with a tag, the persons of an
// import, or the persons that match a filter. A filter has the query parameters of `listPersons`
// and is evaluated when the campaign runs, with the conditions that its view has then. A campaign
// reaches persons of every owner, but a caller reads and counts only what the caller sees.
import { type SqlBool, sql } from 'kysely'
import { splitList } from '../../contract/input/query.ts'
import type { FieldErrors } from '../../contract/output/problems.ts'
import type { Schema } from '../../contract/types.ts'
import { type Context, canCall } from '../../kernel/context.ts'
import { invalid, Problem } from '../../kernel/errors.ts'
import type { NamedRecord, StoredReference } from '../../kernel/history/stored-references.ts'
import { importedId, type QueryValues } from '../../kernel/query/filter.ts'
import { pruneJoins } from '../../kernel/query/joins.ts'
import type { Rows } from '../../kernel/query/page.ts'
import { visible, withoutVisibility } from '../../kernel/query/visibility.ts'
import type { Writing } from '../../kernel/resource/define-resource.ts'
import { checkReference, checkReferences } from '../../kernel/resource/references.ts'
import { customAttributes } from '../attributes/attribute-set.ts'
import { entityOfLookup } from '../attributes/lookups.ts'
import { referencesInValue, referencesToAttribute, withId } from '../attributes/references.ts'
import { valueTypeOf } from '../attributes/types.ts'
import { imports } from '../data-transfer/resource.ts'
import { organizations } from '../organizations/resource.ts'
import { persons } from '../persons/resource.ts'
import { tags } from '../tags/resource.ts'
import { users } from '../users/resource.ts'
import { views } from '../views/resource.ts'
import { storedView } from '../views/sight.ts'
import { deletedInConditions } from './conditions.ts'

export type Audience = Schema<'CampaignAudience'>
type Filter = Schema<'PersonFilter'>

export interface AudienceColumns {
  audience_type: Audience['type']
  audience_filter: string | null
  audience_tag_id: number | null
  audience_import_id: number | null
}

/** The audience of a campaign that was created without the field `audience`. */
export const everyone: AudienceColumns = {
  audience_type: 'all',
  audience_filter: null,
  audience_tag_id: null,
  audience_import_id: null,
}

export interface AudiencePerson {
  id: number
  name: string
  /** Contact points as JSON text. */
  emails: string
}

export const presentAudience = (row: AudienceColumns): Audience => ({
  type: row.audience_type as Audience['type'],
  filter: row.audience_filter === null ? null : (JSON.parse(row.audience_filter) as Filter),
  tag_id: row.audience_tag_id,
  import_id: row.audience_import_id,
})

/**
 * Returns whether the caller may set a filter, and so may read one: the caller sees all persons.
 * Another caller would learn facts about hidden persons from a filter and the size of its audience.
 */
export const maySetFilters = (ctx: Context): boolean =>
  canCall(ctx, persons.listOperation) && (ctx.user?.visibleOwners ?? null) === null

/** Returns the audience as the caller may read it, without a filter that the caller may not set. */
export function readableAudience<A extends Audience>(ctx: Context, audience: A): A {
  return maySetFilters(ctx) ? audience : { ...audience, filter: null }
}

/** Returns the audience of a campaign with its filter, or null when the campaign was deleted. */
export async function storedAudience({ db }: Context, id: number): Promise<Audience | null> {
  const row = await db
    .selectFrom('marketing_campaigns')
    .select(['audience_type', 'audience_filter', 'audience_tag_id', 'audience_import_id'])
    .where('id', '=', id)
    .executeTakeFirst()
  return row ? presentAudience(row) : null
}

/** The field that each audience type requires. The fields of the other types must be null. */
const keys = { all: null, filter: 'filter', tag: 'tag_id', import: 'import_id' } as const

/**
 * Returns the columns for the audience in the request body. Adds all errors below the field
 * `audience`. An unchanged audience is not checked, so a campaign whose tag was deleted stays
 * editable.
 */
export async function toAudienceColumns(
  writing: Writing<AudienceColumns>,
  sent: Schema<'CampaignAudienceInput'> | undefined,
): Promise<AudienceColumns | undefined> {
  if (sent === undefined || writing.errors.isRefused('audience')) return undefined
  const { type, filter = null, tag_id = null, import_id = null } = sent
  // A caller who may not read the stored filter sends back what was read, which is null.
  const keepsFilter = type === 'filter' && filter === null && writing.current?.audience_type === 'filter'
  if (keepsFilter && !maySetFilters(writing.ctx)) return undefined
  const columns = {
    audience_type: type,
    audience_filter: filter && JSON.stringify(filter),
    audience_tag_id: tag_id,
    audience_import_id: import_id,
  }
  if (writing.current && isSameAudience(columns, writing.current)) return columns
  const count = writing.errors.size
  const errors = writing.errors.nested('audience')
  await checkReference({ ctx: writing.ctx, errors }, 'tag_id', tag_id, tags)
  await checkImport({ ctx: writing.ctx, errors }, import_id)
  if (filter !== null) await checkFilter({ ctx: writing.ctx, errors: errors.nested('filter') }, filter)
  if (writing.errors.size > count) return columns
  const given = { filter, tag_id, import_id }
  for (const [of, key] of Object.entries(keys)) {
    if (key === null) continue
    if (type === of && given[key] === null) errors.invalid(key, 'The field is required.')
    if (type !== of && given[key] !== null) errors.invalid(key, `Only an audience of the type ${of} has it.`)
  }
  return columns
}

type Checking = Pick<Writing<unknown>, 'ctx' | 'errors'>

const isSameAudience = (one: AudienceColumns, other: AudienceColumns): boolean =>
  (Object.keys(one) as (keyof AudienceColumns)[]).every((key) => one[key] === other[key])

async function checkImport({ ctx, errors }: Checking, id: number | null): Promise<void> {
  await checkReference({ ctx, errors }, 'import_id', id, imports)
  if (id === null) return
  const row = await ctx.db.selectFrom('imports').select(['type', 'action']).where('id', '=', id).executeTakeFirst()
  if (row && (row.type !== 'persons' || row.action !== 'append'))
    errors.invalid('import_id', 'Must be an import that creates or changes persons.')
}

/** The filter fields that contain ids, with the resource of the ids. */
const references = { organization_id: organizations, user_id: users, tag_id: tags, import_id: imports } as const

/**
 * Adds the errors of a filter. Throws 403 when the caller does not see all persons, because the
 * size of a filtered audience would reveal facts about hidden persons.
 */
async function checkFilter({ ctx, errors }: Checking, filter: Filter): Promise<void> {
  if (!maySetFilters(ctx))
    throw new Problem('forbidden', 'Only a user who sees all persons can filter the audience of a campaign.')
  for (const [name, resource] of Object.entries(references))
    for (const key of [name, `${name}[not]`] as (keyof Filter)[])
      await checkReferences({ ctx, errors }, key, filter[key] as number[] | undefined, resource)
  const count = errors.size
  await checkReference({ ctx, errors }, 'view', filter.view, views)
  if (errors.size > count) return
  for (const [field, sentences] of Object.entries(await filterErrors(ctx, filter)))
    for (const sentence of sentences) errors.invalid(field, sentence)
}

/**
 * Returns the errors of a filter by field. An unknown custom attribute is an error here even when
 * list queries ignore it: without the condition, the campaign would reach persons that the filter
 * excludes.
 */
async function filterErrors(ctx: Context, filter: Filter): Promise<FieldErrors> {
  const known = new Set((await customAttributes(ctx, 'persons')).map(({ code }) => code))
  const unknown = Object.keys(filter.custom_attributes ?? {}).filter((code) => !known.has(code))
  if (unknown.length > 0)
    return Object.fromEntries(unknown.map((code) => [`custom_attributes.${code}`, ['Unknown attribute.']]))
  try {
    await persons.query(withoutVisibility(ctx), await queryOf(ctx, filter))
    return {}
  } catch (cause) {
    if (!(cause instanceof Problem) || cause.more.errors === undefined) throw cause
    return Object.fromEntries(
      Object.entries(cause.more.errors).map(([field, sentences]) => [
        pathOfParameter(field.replace(/^query\./, '')),
        sentences,
      ]),
    )
  }
}

/**
 * Returns the query of a filter, with the conditions of its view, also of one that the caller does
 * not see. Throws 422 when the view no longer exists or selects other records.
 */
async function queryOf(ctx: Context, { view: id, ...filter }: Filter): Promise<QueryValues> {
  if (id === undefined) return filter
  const view = await storedView(ctx, id)
  if (!view) throw invalid({ view: [`No view has id ${id}.`] })
  if (view.type !== persons.entity) throw invalid({ view: [`View ${id} selects ${view.type}, not persons.`] })
  return { ...filter, where: view.where }
}

/** Turns `custom_attributes[industry]` into `custom_attributes.industry`. */
function pathOfParameter(name: string): string {
  const at = name.indexOf('[')
  return at > 0 && name.endsWith(']') ? `${name.slice(0, at)}.${name.slice(at + 1, -1)}` : name
}

/**
 * Returns a sentence that explains why the audience cannot be used: its tag or import was deleted,
 * or its filter names an attribute that no longer exists. Returns null for a valid audience.
 */
export async function audienceProblem(ctx: Context, { type, filter, tag_id, import_id }: Audience) {
  if (type === 'tag' && tag_id === null) return 'The tag of the audience was deleted.'
  if (type === 'import' && import_id === null) return 'The import of the audience was deleted.'
  if (filter === null) return null
  const problem = await filterProblem(ctx, filter)
  return problem === null || maySetFilters(ctx) ? problem : 'The filter of the audience no longer works.'
}

async function filterProblem(ctx: Context, filter: Filter): Promise<string | null> {
  const dead = await deadReference(ctx, filter)
  if (dead !== null) return dead
  const [field, sentences] = Object.entries(await filterErrors(ctx, filter))[0] ?? []
  return field === undefined ? null : `The filter of the audience no longer works. ${field}: ${sentences?.join(' ')}`
}

/**
 * Returns a sentence that names a deleted record of a filter, or null. A filter that excludes a
 * deleted tag would match every person.
 */
async function deadReference(ctx: Context, filter: Filter): Promise<string | null> {
  for (const [name, resource] of Object.entries(references))
    for (const key of [name, `${name}[not]`] as (keyof Filter)[]) {
      const ids = (filter[key] ?? []) as number[]
      const present = ids.length === 0 ? new Set() : await resource.visibleIds(withoutVisibility(ctx), ids)
      const dead = ids.find((id) => !present.has(id))
      if (dead !== undefined)
        return `The filter of the audience no longer works. ${key}: No ${resource.noun} has id ${dead}.`
    }
  const view = filter.view === undefined ? undefined : await storedView(ctx, filter.view)
  const dead = view ? await deletedInConditions(ctx, view.where) : null
  return dead === null ? null : `The view ${view?.name} of the audience no longer works. ${dead}`
}

/**
 * Returns the records that a stored filter names. A filter by the ids of persons is left out: a
 * deleted person gets no e-mail, whether the filter names or excludes the person.
 */
export async function referencesInFilter(ctx: Context, stored: string | null): Promise<StoredReference[]> {
  const filter = JSON.parse(stored ?? '{}') as Filter
  const field = 'audience.filter'
  const view = filter.view === undefined ? [] : [{ field, entity: views.entity, id: filter.view }]
  const named = Object.entries(references).flatMap(([name, { entity }]) =>
    ([name, `${name}[not]`] as (keyof Filter)[])
      .flatMap((key) => (filter[key] ?? []) as number[])
      .map((id) => ({ field, entity, id })),
  )
  const known = await customAttributes(ctx, 'persons')
  const values = Object.entries(filter.custom_attributes ?? {}).flatMap(([code, text]) => {
    const attribute = known.find((each) => each.code === code)
    if (!attribute) return []
    const ids = splitList(text).map((each) => valueTypeOf(attribute)?.read?.(each, ctx.services.config.timezone))
    return [...referencesToAttribute(field, attribute), ...referencesInValue(field, attribute, ids)]
  })
  return [...view, ...named, ...values]
}

/** Returns a stored audience with the record `by` in the place of `named` in its filter. */
export async function replacingInAudience(
  ctx: Context,
  row: AudienceColumns,
  named: NamedRecord,
  by: number,
): Promise<Audience> {
  const audience = presentAudience(row)
  const filter = { ...audience.filter } as Record<string, unknown>
  if (named.entity === views.entity) filter.view = withId(filter.view, named.id, by)
  for (const [name, { entity }] of Object.entries(references))
    for (const key of [name, `${name}[not]`])
      if (entity === named.entity && filter[key] !== undefined) filter[key] = withId(filter[key], named.id, by)
  const known = await customAttributes(ctx, 'persons')
  const values = Object.entries(audience.filter?.custom_attributes ?? {}).map(([code, text]) => {
    const lookup = known.find((each) => each.code === code)?.lookup ?? null
    const isNamed = lookup !== null && entityOfLookup(lookup) === named.entity
    return [code, isNamed ? withId(text, named.id, by) : text] as const
  })
  if (values.length > 0) filter.custom_attributes = Object.fromEntries(values)
  return { ...audience, filter: filter as Filter }
}

/**
 * Returns the next persons of an audience that the caller sees, ordered by id: at most `limit`
 * persons with ids above `after`. A run has no user and sees all persons. The caller must check the
 * audience with `audienceProblem` first.
 */
export async function nextPersons(
  ctx: Context,
  { filter, tag_id, import_id }: Audience,
  { after, limit }: { after: number; limit: number },
): Promise<AudiencePerson[]> {
  const query = { ...(await queryOf(ctx, filter ?? ({} as Filter))), ...(tag_id !== null && { tag_id: [tag_id] }) }
  const all: Rows<unknown> = (await persons.query(withoutVisibility(ctx), query))
    .where(visible(ctx, 'persons.user_id'))
    .clearSelect()
    .clearOrderBy()
  const within =
    import_id === null
      ? all
      : all.where(
          sql<SqlBool>`persons.id in (select ${importedId('person')}
            where link.import_id = ${import_id} and link.entity_type = 'persons' and link.did <> 'deleted')`,
        )
  const page = within
    .select(['persons.id', 'persons.name', 'persons.emails'])
    .where('persons.id', '>', after)
    .orderBy('persons.id')
    .limit(limit)
  // Kysely would run a query with a plugin on a separate executor.
  return (await ctx.db.executeQuery(pruneJoins(page as Rows<AudiencePerson>).compile())).rows
}
