// Computes the values of placeholders for a record. The values are the fields of the
// record and of its person, user and organization, as readable text. Fields that the caller may not
// see are empty.
import { DateTime } from 'luxon'
import { oldNamesOf, recordWithOldNames } from '../../contract/old-names.ts'
import type { Schema } from '../../contract/types.ts'
import { type Context, canCall } from '../../kernel/context.ts'
import type { Resource } from '../../kernel/resource/define-resource.ts'
import { currencyText, numberText } from '../../kernel/values/format.ts'
import { activities } from '../activities/resource.ts'
import { type Attribute, type AttributeSet, attributeSet, type EntityType } from '../attributes/attribute-set.ts'
import { findLabels, type LookupType } from '../attributes/lookups.ts'
import { leads } from '../leads/resource.ts'
import { organizations } from '../organizations/resource.ts'
import { persons } from '../persons/resource.ts'
import { quotes } from '../quotes/resource.ts'
import { type PlaceholderEntity, placeholderSchemas } from './placeholder-schemas.ts'
import { type Placeholders, rawName } from './placeholders.ts'
import { plainFields } from './plain-fields.ts'

export type TemplateSubject = Schema<'EmailTemplatePreviewRequest'>['entity_type']
type Reply = Readonly<Record<string, unknown>>

export const subjects: Record<
  TemplateSubject,
  Pick<Resource<unknown, never>, 'noun' | 'visibleIds' | 'getMany' | 'getOperation'>
> = {
  leads,
  persons,
  quotes,
  activities,
}

/** Returns the placeholder values of a record that the caller may see. */
export const placeholdersOf = async (ctx: Context, subject: TemplateSubject, id: number): Promise<Placeholders> =>
  placeholdersFrom(ctx, subject, (await getRelated(ctx, subjects[subject], id)) ?? {})

/**
 * Returns the placeholder values of a record in its reply form, which may be the last state of a
 * deleted record.
 */
export async function placeholdersFrom(
  ctx: Context,
  subject: TemplateSubject | 'organizations',
  record: Reply,
): Promise<Placeholders> {
  const facts = new Map<string, string>()
  const tell = async (entity: PlaceholderEntity, record: Reply | undefined): Promise<void> => {
    const reply = promised(ctx, entity, record ?? {})
    for (const [code, text] of await textsOf(ctx, entity, reply)) {
      facts.set(`${entity}.${code}`, text)
      facts.set(rawName(`${entity}.${code}`), JSON.stringify(fieldOf(reply, code) ?? null))
    }
  }
  if (subject === 'organizations') {
    await tell(subject, record)
    return addOwnerAndApp(ctx, facts, record)
  }
  if (subject !== 'activities') {
    const person = subject === 'persons' ? record : await getRelated(ctx, persons, idAt(record, 'person_id'))
    await tell('organizations', await getRelated(ctx, organizations, idAt(person, 'organization_id')))
    await tell('persons', person)
  }
  await tell(subject, record)
  return addOwnerAndApp(ctx, facts, record)
}

/** Returns a record that also has the old names of its keys. */
const promised = ({ services }: Context, entity: PlaceholderEntity, record: Reply): Reply =>
  recordWithOldNames(services.contract, services.resources.get(entity)?.getOperation, record)

const fieldOf = (reply: Reply | undefined, code: string): unknown =>
  reply && Object.hasOwn(reply, code) ? reply[code] : (reply?.custom_attributes as Reply | undefined)?.[code]

/**
 * Adds the placeholder values of the record's owner (`users.*`) and of the application (`app.*`).
 */
function addOwnerAndApp(ctx: Context, facts: Map<string, string>, record: Reply): Placeholders {
  const user = record.user as Schema<'UserRef'> | null | undefined
  const owner = { 'users.name': user?.name ?? null, 'users.email': user?.email ?? null }
  for (const [name, value] of Object.entries({ ...owner, ...appFacts(ctx) }))
    facts.set(name, value ?? '').set(rawName(name), JSON.stringify(value))
  return facts
}

/** Returns the values about the application, by placeholder. */
export const appFacts = ({ services, baseUrl }: Context): Record<string, string> => ({
  'app.name': services.config.appName,
  'app.url': baseUrl,
})

/**
 * Returns the placeholder values of the given persons that the caller may read, by person id, with
 * a fixed number of queries.
 */
export async function placeholdersOfPersons(ctx: Context, ids: readonly number[]): Promise<Map<number, Placeholders>> {
  if (!canCall(ctx, persons.getOperation)) return new Map()
  const people = await persons.getMany(ctx, ids)
  const firms = [...people.values()].flatMap((person) => idAt(person, 'organization_id') ?? [])
  const organizationsOf = canCall(ctx, organizations.getOperation)
    ? await organizations.getMany(ctx, firms)
    : new Map<number, Reply>()
  const set = await attributeSet(ctx)
  const shown: [PlaceholderEntity, readonly Reply[]][] = [
    ['organizations', [...organizationsOf.values()]],
    ['persons', [...people.values()]],
  ]
  const known = { set, names: await preloadLabels(ctx, set, shown) }
  const facts = new Map<number, Placeholders>()
  for (const [id, person] of people) {
    const own = new Map<string, string>()
    const organization = organizationsOf.get(idAt(person, 'organization_id') ?? 0)
    for (const [entity, reply] of [
      ['organizations', organization ?? {}],
      ['persons', person],
    ] as const)
      for (const [code, text] of await textsOf(ctx, entity, reply, known)) own.set(`${entity}.${code}`, text)
    facts.set(id, addOwnerAndApp(ctx, own, person))
  }
  return facts
}

/**
 * Loads the labels of all records that lookup attributes refer to, with one query per lookup type.
 */
async function preloadLabels(
  ctx: Context,
  set: AttributeSet,
  shown: [PlaceholderEntity, readonly Reply[]][],
): Promise<LabelLookup> {
  const ids = new Map<LookupType, number[]>()
  for (const [entity, replies] of shown)
    for (const { lookup, code, isOwn } of [set.system, set.own].flatMap((of) => of.get(entity as EntityType) ?? []))
      for (const reply of lookup === null ? [] : replies) {
        const value = (isOwn ? ((reply.custom_attributes ?? {}) as Reply) : reply)[code] ?? []
        ids.set(lookup as LookupType, [...(ids.get(lookup as LookupType) ?? []), ...([value].flat() as number[])])
      }
  const names = new Map<LookupType, ReadonlyMap<number, string>>()
  for (const [lookup, all] of ids) names.set(lookup, await findLabels(ctx, lookup, all))
  return async (lookup) => names.get(lookup) ?? new Map()
}

const idAt = (reply: Reply | undefined, key: string): number | null =>
  typeof reply?.[key] === 'number' ? (reply[key] as number) : null

async function getRelated(
  ctx: Context,
  resource: Pick<Resource<unknown, never>, 'getMany' | 'getOperation'>,
  id: number | null,
): Promise<Reply | undefined> {
  if (id === null || !canCall(ctx, resource.getOperation)) return undefined
  return (await resource.getMany(ctx, [id])).get(id) as Reply | undefined
}

type LabelLookup = (lookup: LookupType, ids: readonly number[]) => Promise<ReadonlyMap<number, string>>
/** Data that is loaded once for many records. */
interface Preloaded {
  set: AttributeSet
  names: LabelLookup
}

/**
 * Returns the readable text of each field, or '' for an unset field. Attributes are formatted by
 * type.
 */
async function textsOf(
  ctx: Context,
  entity: PlaceholderEntity,
  reply: Reply,
  known?: Preloaded,
): Promise<Map<string, string>> {
  const { system, own } = known?.set ?? (await attributeSet(ctx))
  const custom = (reply.custom_attributes ?? {}) as Reply
  const texts = new Map<string, string>()
  for (const key of plainFields(ctx.services.contract, placeholderSchemas[entity]))
    texts.set(key, plainText(ctx, key, reply[key]))
  if (entity === 'activities') texts.set('participants', plainText(ctx, 'participants', reply.participants))
  if (reply.is_all_day === true) for (const [key, text] of dayTexts(ctx, reply)) texts.set(key, text)
  for (const attribute of system.get(entity as EntityType) ?? [])
    texts.set(attribute.code, await readableText(ctx, attribute, reply[attribute.code], known?.names))
  for (const attribute of own.get(entity as EntityType) ?? [])
    texts.set(attribute.code, await readableText(ctx, attribute, custom[attribute.code], known?.names))
  const operation = ctx.services.resources.get(entity)?.getOperation
  for (const [name, old] of operation ? oldNamesOf(ctx.services.contract, operation) : [])
    texts.set(old, texts.get(name) ?? '')
  return texts
}

function plainText(ctx: Context, key: string, value: unknown): string {
  if (value === null || value === undefined) return ''
  if (typeof value === 'boolean') return value ? 'Yes' : 'No'
  if (key === 'participants')
    return (value as Schema<'Participant'>[]).map(({ user, person }) => user?.name ?? person?.name ?? '').join(', ')
  return /_(at|from|to)$/.test(key) ? momentText(ctx, String(value)) : String(value)
}

/**
 * Returns a time or a date in the locale of the installation, such as `27 November 2026 at 09:46
 * CET`. A time is in the time zone of the installation, which it names.
 */
function momentText({ services: { config } }: Context, text: string): string {
  const time = DateTime.fromISO(text, { zone: config.timezone, locale: config.locale })
  if (!time.isValid) return text
  return time.toLocaleString(text.includes('T') ? DateTime.DATETIME_FULL : DateTime.DATE_FULL)
}

/** Returns the first and the last day of an activity that takes whole days. */
function dayTexts(ctx: Context, { schedule_from, schedule_to }: Reply): [key: string, text: string][] {
  const zone = ctx.services.config.timezone
  const day = (time: unknown, back: number): string =>
    momentText(ctx, DateTime.fromISO(String(time), { zone }).minus({ days: back }).toFormat('yyyy-MM-dd'))
  return [
    ['schedule_from', day(schedule_from, 0)],
    ['schedule_to', day(schedule_to, 1)],
  ]
}

export async function readableText(
  ctx: Context,
  attribute: Attribute,
  value: unknown,
  names: LabelLookup = (lookup, ids) => findLabels(ctx, lookup, ids),
): Promise<string> {
  if (value === null || value === undefined) return ''
  switch (attribute.type) {
    case 'number':
      return numberText(Number(value), ctx.services.config)
    case 'price':
      return currencyText(Number(value), ctx.services.config)
    case 'boolean':
      return value ? 'Yes' : 'No'
    case 'date':
    case 'datetime':
      return momentText(ctx, String(value))
    case 'select':
    case 'lookup':
    case 'multiselect':
    case 'checkbox':
      return (await namesOf(attribute, [value].flat() as number[], names)).join(', ')
    case 'email':
    case 'phone':
      return (value as Schema<'ContactPoint'>[]).map((point) => point.value).join(', ')
    case 'address':
      return addressLines(value as Schema<'Address'>)
    case 'image':
    case 'file':
      return (value as Schema<'FileRef'>).name
    default:
      return String(value)
  }
}

async function namesOf({ lookup, options }: Attribute, ids: readonly number[], called: LabelLookup): Promise<string[]> {
  const names = lookup === null ? new Map(options.map(({ id, name }) => [id, name])) : await called(lookup, ids)
  return ids.flatMap((id) => names.get(id) ?? [])
}

/** Returns the lines of an address in the order of an envelope. */
const addressLines = ({ address, postcode, city, state, country }: Schema<'Address'>): string =>
  [address, [postcode, city].filter(Boolean).join(' '), state, country].filter(Boolean).join('\n')
