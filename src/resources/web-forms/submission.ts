// Creates a person and, if the form creates leads, a lead from a submission, through
// the API operations. If a person already has a submitted e-mail address, the lead is linked to
// this person, who is not changed; the reply does not reveal this. The description of the lead
// lists the values that cannot be stored.
import { bodyReader } from '../../contract/input/body-reader.ts'
import { maxFields } from '../../contract/input/validation-errors.ts'
import type { Body, Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { Problem, ValidationErrors } from '../../kernel/errors.ts'
import { fold } from '../../kernel/values/format.ts'
import { textKey } from '../../kernel/values/names.ts'
import { transaction } from '../../kernel/write/write.ts'
import { findChoosable } from '../attributes/lookups.ts'
import { checkValues } from '../attributes/with-attributes.ts'
import { leads } from '../leads/resource.ts'
import { checkPerson, persons } from '../persons/resource.ts'
import type { PublicField, PublicForm } from './public-form.ts'
import { findNewPoints, rejectedValuesNote, withoutPaths } from './rejected-values.ts'
import { isFirstSubmission } from './repeated-submissions.ts'
import { exampleNumber, isBlank, readFieldValue, unreadNumber } from './submitted-values.ts'

/** The maximum length of the description of a lead, in characters. */
const maxTextLength = 65_535
/** The maximum length of an unknown field name in a validation error, in characters. */
const maxKeyLength = 120

type Entity = PublicField['entity']
type Json = Record<string, unknown>

/**
 * Stores a submission. Throws 422 with all validation errors under the names of the form fields,
 * such as `persons.emails.0.value`.
 */
export async function submit(asked: Context, form: PublicForm, sent: Schema<'WebFormSubmission'>): Promise<void> {
  const ctx: Context = { ...asked, origin: 'web_form', ifMatch: null, excused: form.excused }
  try {
    await store(ctx, form, sent)
  } catch (error) {
    // A concurrent submission may have created a person with this e-mail address. The second try
    // then finds that person.
    if (!(error instanceof Problem) || error.code !== 'unique_violation' || error.more.errors) throw error
    await store(ctx, form, sent)
  }
}

const store = (ctx: Context, form: PublicForm, sent: Schema<'WebFormSubmission'>): Promise<void> =>
  transaction(ctx, async (ctx) => {
    const errors = new ValidationErrors()
    const unread = new Set<string>()
    const said = reportOnce(errors, unread)
    const values = {
      persons: await valuesOf(ctx, form, 'persons', sent.persons, said, unread),
      leads: await valuesOf(ctx, form, 'leads', sent.leads ?? {}, said, unread),
    }
    const person = checked(ctx, 'createPerson', values.persons, withFormNames(said, 'persons'))
    const lead = form.createsLead
      ? checked(ctx, 'createLead', await leadOf(ctx, values.leads), withFormNames(said, 'leads'))
      : undefined
    const taken: Record<Entity, string[]> = { persons: [], leads: [] }
    const words = withFormNames(said, 'persons', taken.persons)
    await (person ? checkPerson(ctx, person, words) : checkValues(ctx, 'persons', values.persons, words))
    if (form.createsLead) await checkValues(ctx, 'leads', values.leads, withFormNames(said, 'leads', taken.leads))
    errors.throwIfAny()
    if (!person || !(await isFirstSubmission(ctx, form, sent))) return
    // A value that another record already has causes no error, so visitors cannot find out whether
    // a value is stored.
    const [known] = await knownPersons(ctx, person.emails)
    const left = known === undefined ? withoutPaths(person, taken.persons) : await findNewPoints(ctx, known, person)
    const excusing = await excusedFor(ctx, form, taken)
    const personId =
      known ??
      (await renameFindings('persons', () => persons.create(excusing, { language: form.language, ...left.body }))).id
    if (!lead) return
    const { body, gone } = withoutPaths(lead, taken.leads)
    const note = rejectedValuesNote(form, { persons: left.gone, leads: gone })
    const description = [body.description, note].filter(Boolean).join('\n\n').slice(0, maxTextLength)
    const noted = { ...body, ...(description !== '' && { description }), person_id: personId }
    await renameFindings('leads', () => leads.create(excusing, noted))
  })

/**
 * Returns a context that also allows required attributes to be missing if their submitted value was
 * rejected because another record has it.
 */
async function excusedFor(ctx: Context, form: PublicForm, taken: Record<Entity, string[]>): Promise<Context> {
  const excused = new Set(form.excused)
  for (const { entity, key, attribute } of form.fields)
    if (taken[entity].some((path) => `${path}.`.startsWith(`custom_attributes.${key}.`))) excused.add(attribute.id)
  return { ...ctx, excused }
}

/**
 * Returns the values of the person or the lead: submitted values of visible fields, and defaults of
 * the fields that visitors do not see.
 */
async function valuesOf(
  ctx: Context,
  { fields, texts: { locale } }: PublicForm,
  entity: Entity,
  sent: Json,
  errors: ValidationErrors,
  unread: Set<string>,
): Promise<Json> {
  const own = fields.filter((field) => field.entity === entity)
  const shown = own.filter(({ isShown }) => isShown)
  const strange = Object.keys(sent).filter((key) => !shown.some((field) => field.key === key))
  for (const key of strange.slice(0, maxFields))
    errors.invalid(`${entity}.${key.slice(0, maxKeyLength)}`, 'The form has no such field.')
  const values: Json = {}
  const custom: Json = {}
  for (const field of own) {
    const { attribute, key, isRequired, isShown } = field
    const value = isShown
      ? readFieldValue(attribute, Object.hasOwn(sent, key) ? sent[key] : undefined, locale)
      : await kept(ctx, field)
    if (value === unreadNumber) {
      errors.invalid(`${entity}.${key}`, `Must be a number such as ${exampleNumber(locale)}.`)
      unread.add(`${entity}.${key}`)
      continue
    }
    const isMissing = isBlank(value) || (attribute.type === 'boolean' && value === false)
    if (isShown && isRequired && isMissing) errors.invalid(`${entity}.${key}`, 'The field is required.')
    if (value !== undefined) (attribute.isOwn ? custom : values)[key] = value
  }
  return Object.keys(custom).length > 0 ? { ...values, custom_attributes: custom } : values
}

/**
 * Returns the default of a field that visitors do not see, without ids of records that have been
 * deleted.
 */
async function kept(ctx: Context, { attribute: { lookup }, initial }: PublicField): Promise<unknown> {
  if (initial === null) return undefined
  if (lookup === null) return initial
  const ids = [initial].flat() as number[]
  const left = await findChoosable(ctx, lookup, ids)
  if (Array.isArray(initial)) return ids.filter((id) => left.has(id))
  return left.has(ids[0] ?? 0) ? initial : undefined
}

/** Returns the body of the lead. Missing values get a default title, amount and source. */
async function leadOf(ctx: Context, values: Json): Promise<Json> {
  const source = await ctx.db
    .selectFrom('lead_sources')
    .select('id')
    .where('name_key', '=', textKey('Web Form'))
    .executeTakeFirst()
  return {
    title: 'Lead From Web Form',
    lead_value: 0,
    ...(source && { lead_source_id: source.id }),
    ...Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null)),
  }
}

/**
 * Returns the values parsed as a body of the API operation. Returns undefined and adds validation
 * errors when the values are invalid.
 */
function checked<O extends 'createPerson' | 'createLead'>(
  { services: { contract, config } }: Context,
  operation: O,
  values: Json,
  errors: ValidationErrors,
): Body<O> | undefined {
  const reading = { zone: config.timezone, strict: config.strict }
  const { value, errors: refused } = bodyReader(contract, operation)(values, reading)
  for (const [field, sentences] of Object.entries(refused))
    for (const sentence of sentences) errors.invalid(field, sentence)
  return Object.keys(refused).length > 0 ? undefined : (value as Body<O>)
}

/**
 * Returns the ids of the persons with these e-mail addresses, in the order of `emails`. Persons of
 * every owner are included.
 */
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

/**
 * Returns a collection that passes each validation error to `errors` only once, because several
 * rules may report an identical error. A field in `closed` takes no further errors.
 */
function reportOnce(errors: ValidationErrors, closed: ReadonlySet<string>): ValidationErrors {
  const said = new Set<string>()
  const inner = new ValidationErrors()
  inner.invalid = (field, sentence) => {
    if (said.has(field + sentence) || closed.has(field)) return
    said.add(field + sentence)
    errors.invalid(field, sentence)
  }
  return inner
}

/**
 * Returns a collection that reports validation errors under the names of the form fields. A value
 * that another record already has causes no error; its path is added to `taken`.
 */
function withFormNames(errors: ValidationErrors, entity: Entity, taken: string[] = []): ValidationErrors {
  const inner = new ValidationErrors()
  inner.invalid = (field, sentence) => errors.invalid(fieldOf(entity, field), sentence)
  inner.taken = (field) => void taken.push(field)
  return inner
}

/**
 * Runs `work` and renames the validation errors of its Problem to the names of the form fields.
 * Removes the ids of conflicting records, so that the reply does not reveal them.
 */
async function renameFindings<T>(entity: Entity, work: () => Promise<T>): Promise<T> {
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
