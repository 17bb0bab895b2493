// What placeholders can say of a record (DOMAIN 18.4): every attribute of it as people read it, and those of its person, user and
// organization. What the caller may not see is not said.
import { DateTime } from 'luxon'
import type { Schema } from '../../contract/types.ts'
import { type Context, canCall } from '../../kernel/context.ts'
import type { Resource } from '../../kernel/resource/define-resource.ts'
import { currencyText } from '../../kernel/values/format.ts'
import { activities } from '../activities/resource.ts'
import { type LookupType, labels } from '../attributes/lookups.ts'
import { type Attribute, type AttributeSet, attributeSet, type EntityType } from '../attributes/set.ts'
import { leads } from '../leads/resource.ts'
import { organizations } from '../organizations/resource.ts'
import { persons } from '../persons/resource.ts'
import { quotes } from '../quotes/resource.ts'
import { plainFields } from './fields.ts'
import type { Placeholders } from './placeholders.ts'
import { shown, type Told } from './shown.ts'

export type Subject = Schema<'EmailTemplatePreviewRequest'>['entity_type']
type Reply = Readonly<Record<string, unknown>>

export const subjects: Record<
  Subject,
  Pick<Resource<unknown, never>, 'noun' | 'visibleIds' | 'getMany' | 'getOperation'>
> = {
  leads,
  persons,
  quotes,
  activities,
}

/** All that can be said of a record the caller sees. */
export const factsOf = async (ctx: Context, subject: Subject, id: number): Promise<Placeholders> =>
  factsFrom(ctx, subject, (await one(ctx, subjects[subject], id)) ?? {})

/** The same from the record as it is shown, or was shown last before it was deleted. */
export async function factsFrom(ctx: Context, subject: Subject, record: Reply): Promise<Placeholders> {
  const facts = new Map<string, string>()
  const tell = async (entity: Told, reply: Reply | undefined): Promise<void> => {
    for (const [code, text] of await textsOf(ctx, entity, reply ?? {})) facts.set(`${entity}.${code}`, text)
  }
  if (subject !== 'activities') {
    const person = subject === 'persons' ? record : await one(ctx, persons, idAt(record, 'person_id'))
    await tell('organizations', await one(ctx, organizations, idAt(person, 'organization_id')))
    await tell('persons', person)
  }
  await tell(subject, record)
  return withOthers(ctx, facts, record)
}

/** The owner of a record, and the program itself. */
function withOthers(ctx: Context, facts: Map<string, string>, record: Reply): Placeholders {
  const user = record.user as Schema<'UserRef'> | null | undefined
  facts.set('users.name', user?.name ?? '').set('users.email', user?.email ?? '')
  const { config } = ctx.services
  return facts.set('app.name', config.appName).set('app.url', ctx.baseUrl)
}

/** The same for many persons, with as many queries as for one. */
export async function factsOfPersons(ctx: Context, ids: readonly number[]): Promise<Map<number, Placeholders>> {
  const people = await persons.getMany(ctx, ids)
  const firms = [...people.values()].flatMap((person) => idAt(person, 'organization_id') ?? [])
  const organizationsOf = canCall(ctx, organizations.getOperation)
    ? await organizations.getMany(ctx, firms)
    : new Map<number, Reply>()
  const set = await attributeSet(ctx)
  const told: [Told, readonly Reply[]][] = [
    ['organizations', [...organizationsOf.values()]],
    ['persons', [...people.values()]],
  ]
  const known = { set, names: await namesIn(ctx, set, told) }
  const facts = new Map<number, Placeholders>()
  for (const [id, person] of people) {
    const own = new Map<string, string>()
    const organization = organizationsOf.get(idAt(person, 'organization_id') ?? 0)
    for (const [entity, reply] of [
      ['organizations', organization ?? {}],
      ['persons', person],
    ] as const)
      for (const [code, text] of await textsOf(ctx, entity, reply, known)) own.set(`${entity}.${code}`, text)
    facts.set(id, withOthers(ctx, own, person))
  }
  return facts
}

/** What all that the records refer to is called, one query for each kind. */
async function namesIn(ctx: Context, set: AttributeSet, told: [Told, readonly Reply[]][]): Promise<Names> {
  const ids = new Map<LookupType, number[]>()
  for (const [entity, replies] of told)
    for (const { lookup, code, isOwn } of [set.system, set.own].flatMap((of) => of.get(entity as EntityType) ?? []))
      for (const reply of lookup === null ? [] : replies) {
        const value = (isOwn ? ((reply.custom_attributes ?? {}) as Reply) : reply)[code] ?? []
        ids.set(lookup as LookupType, [...(ids.get(lookup as LookupType) ?? []), ...([value].flat() as number[])])
      }
  const names = new Map<LookupType, ReadonlyMap<number, string>>()
  for (const [lookup, all] of ids) names.set(lookup, await labels(ctx, lookup, all))
  return async (lookup) => names.get(lookup) ?? new Map()
}

const idAt = (reply: Reply | undefined, key: string): number | null =>
  typeof reply?.[key] === 'number' ? (reply[key] as number) : null

async function one(
  ctx: Context,
  resource: Pick<Resource<unknown, never>, 'getMany' | 'getOperation'>,
  id: number | null,
): Promise<Reply | undefined> {
  if (id === null || !canCall(ctx, resource.getOperation)) return undefined
  return (await resource.getMany(ctx, [id])).get(id) as Reply | undefined
}

type Names = (lookup: LookupType, ids: readonly number[]) => Promise<ReadonlyMap<number, string>>
/** What has been read for several records at once. */
interface Known {
  set: AttributeSet
  names: Names
}

/** What people read of each field, nothing where it has no value: of attributes by their type, of the rest what is plain. */
async function textsOf(ctx: Context, entity: Told, reply: Reply, known?: Known): Promise<Map<string, string>> {
  const { system, own } = known?.set ?? (await attributeSet(ctx))
  const custom = (reply.custom_attributes ?? {}) as Reply
  const texts = new Map<string, string>()
  for (const key of plainFields(ctx.services.contract, shown[entity])) texts.set(key, plainText(ctx, key, reply[key]))
  if (entity === 'activities') texts.set('participants', plainText(ctx, 'participants', reply.participants))
  for (const attribute of system.get(entity as EntityType) ?? [])
    texts.set(attribute.code, await textOf(ctx, attribute, reply[attribute.code], known?.names))
  for (const attribute of own.get(entity as EntityType) ?? [])
    texts.set(attribute.code, await textOf(ctx, attribute, custom[attribute.code], known?.names))
  return texts
}

function plainText(ctx: Context, key: string, value: unknown): string {
  if (value === null || value === undefined) return ''
  if (typeof value === 'boolean') return value ? 'Yes' : 'No'
  if (key === 'participants')
    return (value as Schema<'Participant'>[]).map(({ user, person }) => user?.name ?? person?.name ?? '').join(', ')
  return /_(at|from|to)$/.test(key) ? momentText(ctx, String(value)) : String(value)
}

/** A moment in the installation's time zone; a date stays one. */
function momentText({ services: { config } }: Context, text: string): string {
  const time = DateTime.fromISO(text, { zone: config.timezone })
  return text.includes('T') && time.isValid ? time.toFormat('yyyy-MM-dd HH:mm') : text
}

/** What people read of a value that a record shows. */
export async function textOf(
  ctx: Context,
  attribute: Attribute,
  value: unknown,
  names: Names = (lookup, ids) => labels(ctx, lookup, ids),
): Promise<string> {
  if (value === null || value === undefined) return ''
  switch (attribute.type) {
    case 'price':
      return currencyText(Number(value), ctx.services.config)
    case 'boolean':
      return value ? 'Yes' : 'No'
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
      return lines(value as Schema<'Address'>)
    case 'image':
    case 'file':
      return (value as Schema<'FileRef'>).name
    default:
      return String(value)
  }
}

async function namesOf({ lookup, options }: Attribute, ids: readonly number[], called: Names): Promise<string[]> {
  const names = lookup === null ? new Map(options.map(({ id, name }) => [id, name])) : await called(lookup, ids)
  return ids.flatMap((id) => names.get(id) ?? [])
}

/** An address as it stands on an envelope. */
const lines = ({ address, postcode, city, state, country }: Schema<'Address'>): string =>
  [address, [postcode, city].filter(Boolean).join(' '), state, country].filter(Boolean).join('\n')
