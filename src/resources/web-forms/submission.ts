// What a visitor sends becomes a person, and a lead where the form makes some (DOMAIN 19), by the ways everybody takes. A known
// e-mail address selects its person, who is never changed, and the answer does not tell. What cannot be stored is noted with the lead.
import { bodyReader } from '../../contract/input/body-reader.ts'
import { maxFields } from '../../contract/input/validation-errors.ts'
import type { Body, Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { Problem, ValidationErrors } from '../../kernel/errors.ts'
import { fold } from '../../kernel/values/format.ts'
import { transaction } from '../../kernel/write/write.ts'
import { chosen } from '../attributes/lookups.ts'
import { checkValues } from '../attributes/values.ts'
import { leads } from '../leads/resource.ts'
import { checkPerson, persons } from '../persons/resource.ts'
import type { PublicField, PublicForm } from './public-form.ts'
import { findNewPoints, rejectedValuesNote, withoutPaths } from './rejected-values.ts'
import { isBlank, readFieldValue } from './submitted-values.ts'

/** As long as the description of a lead may be. */
const maxTextLength = 65_535
/** As much of a name as is said back. */
const maxKeyLength = 120

type Entity = PublicField['entity']
type Json = Record<string, unknown>

/** Throws 422 in the visitor's words, `persons.emails.0.value`, with everything that is wrong. */
export async function submit(asked: Context, form: PublicForm, sent: Schema<'WebFormSubmission'>): Promise<void> {
  const ctx: Context = { ...asked, origin: 'web_form', ifMatch: null, excused: form.excused }
  try {
    await store(ctx, form, sent)
  } catch (error) {
    // Two submissions at once: by now there is the person whom this one did not find.
    if (!(error instanceof Problem) || error.code !== 'unique_violation' || error.more.errors) throw error
    await store(ctx, form, sent)
  }
}

const store = (ctx: Context, form: PublicForm, sent: Schema<'WebFormSubmission'>): Promise<void> =>
  transaction(ctx, async (ctx) => {
    const found = new ValidationErrors()
    const said = sayOnce(found)
    const values = {
      persons: await valuesOf(ctx, form, 'persons', sent.persons, said),
      leads: await valuesOf(ctx, form, 'leads', sent.leads ?? {}, said),
    }
    const person = checked(ctx, 'createPerson', values.persons, visitorsWords(said, 'persons'))
    const lead = form.createsLead
      ? checked(ctx, 'createLead', await leadOf(ctx, values.leads), visitorsWords(said, 'leads'))
      : undefined
    const taken: Record<Entity, string[]> = { persons: [], leads: [] }
    const words = visitorsWords(said, 'persons', taken.persons)
    await (person ? checkPerson(ctx, person, words) : checkValues(ctx, 'persons', values.persons, words))
    if (form.createsLead) await checkValues(ctx, 'leads', values.leads, visitorsWords(said, 'leads', taken.leads))
    found.throwIfAny()
    if (!person) return
    // Nobody is refused for what is known, so that nobody can tell what is (DOMAIN 19).
    const [known] = await knownPersons(ctx, person.emails)
    const left = known === undefined ? withoutPaths(person, taken.persons) : await findNewPoints(ctx, known, person)
    const excusing = await excusedFor(ctx, form, taken)
    const personId = known ?? (await inVisitorsWords('persons', () => persons.create(excusing, left.body))).id
    if (!lead) return
    const { body, gone } = withoutPaths(lead, taken.leads)
    const note = rejectedValuesNote(form, { persons: left.gone, leads: gone })
    const description = [body.description, note].filter(Boolean).join('\n\n').slice(0, maxTextLength)
    const noted = { ...body, ...(description !== '' && { description }), person_id: personId }
    await inVisitorsWords('leads', () => leads.create(excusing, noted))
  })

/** A field that must have a value may be without one whose value is that of somebody else. */
async function excusedFor(ctx: Context, form: PublicForm, taken: Record<Entity, string[]>): Promise<Context> {
  const excused = new Set(form.excused)
  for (const { entity, key, attribute } of form.fields)
    if (taken[entity].some((path) => `${path}.`.startsWith(`custom_attributes.${key}.`))) excused.add(attribute.id)
  return { ...ctx, excused }
}

/** The values of one record: what was sent of the fields that are shown, and the defaults of the others. */
async function valuesOf(
  ctx: Context,
  { fields }: PublicForm,
  entity: Entity,
  sent: Json,
  found: ValidationErrors,
): Promise<Json> {
  const own = fields.filter((field) => field.entity === entity)
  const shown = own.filter(({ isShown }) => isShown)
  const strange = Object.keys(sent).filter((key) => !shown.some((field) => field.key === key))
  for (const key of strange.slice(0, maxFields))
    found.invalid(`${entity}.${key.slice(0, maxKeyLength)}`, 'The form has no such field.')
  const values: Json = {}
  const custom: Json = {}
  for (const field of own) {
    const { attribute, key, isRequired, isShown } = field
    const value = isShown
      ? readFieldValue(attribute, Object.hasOwn(sent, key) ? sent[key] : undefined)
      : await kept(ctx, field)
    const isMissing = isBlank(value) || (attribute.type === 'boolean' && value === false)
    if (isShown && isRequired && isMissing) found.invalid(`${entity}.${key}`, 'The field is required.')
    if (value !== undefined) (attribute.isOwn ? custom : values)[key] = value
  }
  return Object.keys(custom).length > 0 ? { ...values, custom_attributes: custom } : values
}

/** The default of a field that is not shown; what it names may be gone since, and that is not the visitor's business. */
async function kept(ctx: Context, { attribute: { lookup }, initial }: PublicField): Promise<unknown> {
  if (initial === null) return undefined
  if (lookup === null) return initial
  const ids = [initial].flat() as number[]
  const left = await chosen(ctx, lookup, ids)
  if (Array.isArray(initial)) return ids.filter((id) => left.has(id))
  return left.has(ids[0] ?? 0) ? initial : undefined
}

/** A lead that says little: a title of its own, no value, and where it came from. */
async function leadOf(ctx: Context, values: Json): Promise<Json> {
  const source = await ctx.db
    .selectFrom('lead_sources')
    .select('id')
    .where('name_key', '=', fold('Web Form'))
    .executeTakeFirst()
  return {
    title: 'Lead From Web Form',
    lead_value: 0,
    ...(source && { lead_source_id: source.id }),
    ...Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null)),
  }
}

/** The body as the operation takes it; undefined when it does not. */
function checked<O extends 'createPerson' | 'createLead'>(
  { services: { contract, config } }: Context,
  operation: O,
  values: Json,
  found: ValidationErrors,
): Body<O> | undefined {
  const reading = { zone: config.timezone, strict: config.strict }
  const { value, errors } = bodyReader(contract, operation)(values, reading)
  for (const [field, sentences] of Object.entries(errors))
    for (const sentence of sentences) found.invalid(field, sentence)
  return Object.keys(errors).length > 0 ? undefined : (value as Body<O>)
}

/** The persons with these addresses, in the order of the addresses; whoever owns them. */
async function knownPersons({ db }: Context, emails: Body<'createPerson'>['emails'] = []): Promise<number[]> {
  const keys = emails.flatMap(({ value }) => (value === null ? [] : [fold(value)]))
  if (keys.length === 0) return []
  const rows = await db
    .selectFrom('unique_values')
    .innerJoin('attributes', 'attributes.id', 'unique_values.attribute_id')
    .select(['unique_values.value', 'unique_values.entity_id'])
    .where('unique_values.entity_type', '=', 'persons')
    .where('attributes.code', '=', 'emails')
    .where('attributes.is_user_defined', '=', 0)
    .where('unique_values.value', 'in', keys)
    .execute()
  const holders = new Map(rows.map((row) => [row.value, row.entity_id]))
  return [...new Set(keys.flatMap((key) => holders.get(key) ?? []))]
}

const fieldOf = (entity: Entity, field: string): string => `${entity}.${field.replace(/^custom_attributes\./, '')}`

/** A sentence about a field is said once, although several rules find the same. */
function sayOnce(found: ValidationErrors): ValidationErrors {
  const said = new Set<string>()
  const inner = new ValidationErrors()
  inner.invalid = (field, sentence) => {
    if (said.has(field + sentence)) return
    said.add(field + sentence)
    found.invalid(field, sentence)
  }
  return inner
}

/** Findings about a record under the names the form has. Of what another record has, the paths are added to `taken`. */
function visitorsWords(found: ValidationErrors, entity: Entity, taken: string[] = []): ValidationErrors {
  const inner = new ValidationErrors()
  inner.invalid = (field, sentence) => found.invalid(fieldOf(entity, field), sentence)
  inner.taken = (field) => void taken.push(field)
  return inner
}

/** What a rule refuses that is asked only by the write itself. */
async function inVisitorsWords<T>(entity: Entity, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof Problem) || !error.more.errors) throw error
    const { errors, conflicts } = error.more
    throw new Problem(error.code, error.message, {
      errors: Object.fromEntries(Object.entries(errors).map(([field, each]) => [fieldOf(entity, field), each])),
      ...(conflicts && { conflicts: conflicts.map((each) => ({ ...each, id: null })) }),
      cause: error,
    })
  }
}
