// Computes the values of placeholders for a record. The values are the fields of the
// record and of its person, user and organization, as readable text. Fields that the caller may not
// see are empty.
import { DateTime } from 'luxon'
import { oldNamesOf, recordWithOldNames } from '../../contract/old-names.ts'
import type { Schema } from '../../contract/types.ts'
import { type Context, canCall } from '../../kernel/context.ts'
import type { Resource } from '../../kernel/resource/define-resource.ts'
import { currencyText, numberText } from '../../kernel/values/format.ts'
import { daysText, momentText, periodText, shortText } from '../../kernel/values/moments.ts'
import { countryName } from '../../texts/countries.ts'
import type { TextKey, Texts } from '../../texts/texts.ts'
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
export const placeholdersOf = async (
  ctx: Context,
  subject: TemplateSubject,
  id: number,
  texts?: Texts,
): Promise<Placeholders> => placeholdersFrom(ctx, subject, (await getRelated(ctx, subjects[subject], id)) ?? {}, texts)

/**
 * Returns the placeholder values of a record in its reply form, which may be the last state of a
 * deleted record. `given` has the language of the recipient, by default that of the installation.
 */
export async function placeholdersFrom(
  ctx: Context,
  subject: TemplateSubject | 'organizations',
  record: Reply,
  given?: Texts,
): Promise<Placeholders> {
  const texts = given ?? (await ctx.services.textsFor(ctx))
  const facts = new Map<string, string>()
  const tell = async (entity: PlaceholderEntity, record: Reply | undefined): Promise<void> => {
    const reply = promised(ctx, entity, record ?? {})
    for (const [code, text] of await textsOf(ctx, entity, reply, { texts })) {
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
  if (subject === 'activities') for (const [name, key] of await invitationTexts()) facts.set(name, texts.say(key))
  return addOwnerAndApp(ctx, facts, record)
}

/** Returns the keys of the texts that templates about activities may contain, by placeholder. */
export async function invitationTexts(): Promise<[placeholder: string, key: TextKey][]> {
  const { textKeys } = await import('../../texts/texts.ts')
  return textKeys.filter((key) => key.startsWith('invitation.')).map((key) => [key.replace(/^\w+/, 'texts'), key])
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
export async function placeholdersOfPersons(
  ctx: Context,
  ids: readonly number[],
  texts: Texts,
): Promise<Map<number, Placeholders>> {
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
  const known = { set, texts, names: await preloadLabels(ctx, set, shown) }
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
/** The language, and data that may be loaded once for many records. */
interface Writing {
  texts: Texts
  set?: AttributeSet
  names?: LabelLookup
}

/**
 * Returns the readable text of each field, or '' for an unset field. Attributes are formatted by
 * type.
 */
async function textsOf(
  ctx: Context,
  entity: PlaceholderEntity,
  reply: Reply,
  writing: Writing,
): Promise<Map<string, string>> {
  const { system, own } = writing.set ?? (await attributeSet(ctx))
  const custom = (reply.custom_attributes ?? {}) as Reply
  const found = new Map<string, string>()
  for (const key of plainFields(ctx.services.contract, placeholderSchemas[entity]))
    found.set(key, plainText(ctx, key, reply[key], writing))
  if (entity === 'activities') for (const [key, text] of activityTexts(ctx, reply, writing)) found.set(key, text)
  for (const attribute of system.get(entity as EntityType) ?? [])
    found.set(attribute.code, await readableText(ctx, attribute, reply[attribute.code], writing))
  for (const attribute of own.get(entity as EntityType) ?? [])
    found.set(attribute.code, await readableText(ctx, attribute, custom[attribute.code], writing))
  const operation = ctx.services.resources.get(entity)?.getOperation
  for (const [name, old] of operation ? oldNamesOf(ctx.services.contract, operation) : [])
    found.set(old, found.get(name) ?? '')
  return found
}

function plainText(ctx: Context, key: string, value: unknown, { texts }: Writing): string {
  if (value === null || value === undefined) return ''
  if (typeof value === 'boolean') return texts.say(value ? 'value.yes' : 'value.no')
  if (key === 'participants')
    return (value as Schema<'Participant'>[]).map(({ user, person }) => user?.name ?? person?.name ?? '').join(', ')
  return /_(at|from|to)$/.test(key) ? momentText(String(value), placeOf(ctx, texts)) : String(value)
}

const placeOf = ({ services: { config } }: Context, { locale }: Texts) => ({ zone: config.timezone, locale })

/**
 * Returns the texts that only activities have: who takes part, when it is in full and in short, and
 * the first and last day of one that takes whole days.
 */
function activityTexts(ctx: Context, reply: Reply, writing: Writing): [code: string, text: string][] {
  const { schedule_from: from, schedule_to: to } = reply
  const known: [string, string][] = [['participants', plainText(ctx, 'participants', reply.participants, writing)]]
  const place = placeOf(ctx, writing.texts)
  const short = (text: string): string => shortText(text, ctx.time, place)
  if (typeof from !== 'string' || typeof to !== 'string') return [...known, ['time', ''], ['short_time', '']]
  if (reply.is_all_day !== true) return [...known, ['time', periodText(from, to, place)], ['short_time', short(from)]]
  const day = (time: string, back: number): string =>
    DateTime.fromISO(time, { zone: place.zone }).minus({ days: back }).toFormat('yyyy-MM-dd')
  const [first, last] = [day(from, 0), day(to, 1)]
  return [
    ...known,
    ['time', daysText(first, last, place)],
    ['short_time', short(first)],
    ['schedule_from', momentText(first, place)],
    ['schedule_to', momentText(last, place)],
  ]
}

export async function readableText(
  ctx: Context,
  attribute: Attribute,
  value: unknown,
  { texts, names = (lookup, ids) => findLabels(ctx, lookup, ids) }: Writing,
): Promise<string> {
  const { currency } = ctx.services.config
  if (value === null || value === undefined) return ''
  switch (attribute.type) {
    case 'number':
      return numberText(Number(value), texts)
    case 'price':
      return currencyText(Number(value), { locale: texts.locale, currency })
    case 'boolean':
      return texts.say(value ? 'value.yes' : 'value.no')
    case 'date':
    case 'datetime':
      return momentText(String(value), placeOf(ctx, texts))
    case 'select':
    case 'lookup':
    case 'multiselect':
    case 'checkbox':
      return (await namesOf(attribute, [value].flat() as number[], names)).join(', ')
    case 'email':
    case 'phone':
      return (value as Schema<'ContactPoint'>[]).map((point) => point.value).join(', ')
    case 'address':
      return addressLines(value as Schema<'Address'>, texts)
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
const addressLines = ({ address, postcode, city, state, country }: Schema<'Address'>, texts: Texts): string =>
  [address, [postcode, city].filter(Boolean).join(' '), state, country && countryName(country, texts)]
    .filter(Boolean)
    .join('\n')
