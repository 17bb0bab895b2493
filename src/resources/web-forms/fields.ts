// The fields of a web form. A field shows an attribute of persons, or of leads if the
// form creates leads. Every form requires the name and e-mail address of the person, so that
// someone can reply to the visitor.
import { isDeepStrictEqual } from 'node:util'
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { ValidationErrors } from '../../kernel/errors.ts'
import type { NamedRecord, StoredReference } from '../../kernel/history/stored-references.ts'
import type { Writing } from '../../kernel/resource/define-resource.ts'
import { type Attribute, attributesOf } from '../attributes/attribute-set.ts'
import { entityOfLookup } from '../attributes/lookups.ts'
import { referencesInValue, withId } from '../attributes/references.ts'
import { presentDefault } from '../attributes/rows.ts'
import { checkDefault } from '../attributes/rules.ts'

type Input = Schema<'WebFormAttributeInput'>
type Field = Schema<'WebFormAttribute'>
type Body = Schema<'WebFormUpdate'>

interface Planned {
  id: number | undefined
  attribute_id: number
  name: string | null
  placeholder: string | null
  is_required: number
  is_hidden: number
  default_value: string | null
  sort_order: number
}

/** A stored field, joined with columns of its attribute. */
interface Row extends Omit<Planned, 'id'> {
  id: number
  web_form_id: number
  code: string
  attribute_name: string
  type: string
  entity_type: string
}

const always: readonly string[] = ['name', 'emails']
/**
 * Attribute types that a form cannot have: a subheading has no value, and a submission cannot
 * contain files.
 */
const excluded = new Set(['subheading', 'image', 'file'])

/** Returns the attributes that a form can have, by attribute id and in default order. */
async function possible(ctx: Context): Promise<Map<number, Attribute>> {
  const all = [...(await attributesOf(ctx, 'persons')), ...(await attributesOf(ctx, 'leads'))]
  return new Map(all.filter(({ type }) => !excluded.has(type)).map((attribute) => [attribute.id, attribute]))
}

const isAlways = ({ entity, code, isOwn }: Attribute): boolean =>
  entity === 'persons' && !isOwn && always.includes(code)

/**
 * Returns the fields of the form after the write, or undefined when the write keeps the stored
 * fields. Adds a validation error for each invalid field of the body.
 */
export async function planFields(
  { ctx, current, errors }: Pick<Writing<{ id: number; create_lead: number }>, 'ctx' | 'current' | 'errors'>,
  body: Body,
): Promise<Planned[] | undefined> {
  const createsLead = body.create_lead ?? current?.create_lead === 1
  const present = current ? await rowsOf(ctx, [current.id]) : []
  const attributes = await possible(ctx)
  if (body.attributes === undefined && present.length > 0) {
    // A form that does not create leads must not have fields of leads.
    const hasLeads = present.some(({ entity_type }) => entity_type === 'leads')
    if (!createsLead && hasLeads) errors.invalid('create_lead', 'Fields of leads are on the form; remove them first.')
    return undefined
  }
  const taken = new Set<number>()
  const planned: Planned[] = []
  for (const [index, input] of (body.attributes ?? []).entries()) {
    const below = errors.nested(`attributes.${index}`)
    const row = present.find(({ id, attribute_id }) =>
      input.id === undefined ? attribute_id === input.attribute_id : id === input.id,
    )
    const attribute = attributeOf(attributes, input, row, createsLead, below)
    if (!attribute) continue
    if (taken.has(attribute.id)) below.invalid('attribute_id', 'This attribute occurs twice.')
    taken.add(attribute.id)
    planned.push(await planOne(ctx, attribute, input, row, index, below))
  }
  const missing = [...attributes.values()].filter((each) => isAlways(each) && !taken.has(each.id))
  const added = await Promise.all(
    missing.map((attribute, index) =>
      planOne(ctx, attribute, {}, undefined, planned.length + index, new ValidationErrors()),
    ),
  )
  return [...planned, ...added]
}

function attributeOf(
  attributes: ReadonlyMap<number, Attribute>,
  { id, attribute_id }: Input,
  row: Row | undefined,
  createsLead: boolean,
  errors: ValidationErrors,
): Attribute | undefined {
  if (id !== undefined && !row) errors.invalid('id', `This form has no field with id ${id}.`)
  else if (id === undefined && attribute_id === undefined) errors.invalid('attribute_id', 'The field is required.')
  else if (row && attribute_id !== undefined && attribute_id !== row.attribute_id)
    errors.invalid('attribute_id', 'A field keeps its attribute.')
  const attributeId = row?.attribute_id ?? attribute_id
  const attribute = attributes.get(attributeId ?? 0)
  if (!attribute && attributeId !== undefined)
    errors.invalid('attribute_id', `No attribute of persons or leads that a form can have has id ${attributeId}.`)
  if (attribute?.entity === 'leads' && !createsLead)
    errors.invalid('attribute_id', 'A form has fields of leads only when it creates leads.')
  return attribute
}

/** Returns whether the field asks for the consent of the person to receive campaigns. */
const isConsent = ({ isOwn, entity, code }: Attribute): boolean =>
  !isOwn && entity === 'persons' && code === 'subscribed'

async function planOne(
  ctx: Context,
  attribute: Attribute,
  input: Input,
  row: Row | undefined,
  index: number,
  errors: ValidationErrors,
): Promise<Planned> {
  const sent = input.default_value
  // An unchanged default is not checked again. It stays valid even if the record that it refers to
  // has been deleted.
  const stays = row !== undefined && (sent === undefined || isDeepStrictEqual(sent, presentDefault(row)))
  const stored = stays ? row.default_value : await checkDefault({ ctx, errors }, attribute, sent ?? null)
  const isRequired = isAlways(attribute) || (input.is_required ?? (row ? row.is_required === 1 : attribute.isRequired))
  const isHidden = input.is_hidden ?? row?.is_hidden === 1
  if (isAlways(attribute) && input.is_required === false)
    errors.invalid('is_required', 'Name and e-mail address are always required.')
  if (isHidden && isRequired && stored === null)
    errors.invalid('is_hidden', 'A required field needs a default to be hidden.')
  if (isConsent(attribute) && stored === 'true')
    errors.invalid('default_value', 'Only a visitor can agree to campaigns, so the box cannot be ticked by default.')
  return {
    id: row?.id,
    attribute_id: attribute.id,
    name: input.name === undefined ? (row?.name ?? null) : input.name,
    placeholder: input.placeholder === undefined ? (row?.placeholder ?? null) : input.placeholder,
    is_required: Number(isRequired),
    is_hidden: Number(isHidden),
    default_value: stored ?? null,
    sort_order: input.sort_order ?? index + 1,
  }
}

export async function saveFields(ctx: Context, formId: number, planned: readonly Planned[]): Promise<void> {
  const kept = planned.flatMap(({ id }) => id ?? [])
  let gone = ctx.db.deleteFrom('web_form_attributes').where('web_form_id', '=', formId)
  if (kept.length > 0) gone = gone.where('id', 'not in', kept)
  await gone.execute()
  for (const { id, ...values } of planned) {
    if (id === undefined)
      await ctx.db
        .insertInto('web_form_attributes')
        .values({ ...values, web_form_id: formId })
        .execute()
    else await ctx.db.updateTable('web_form_attributes').set(values).where('id', '=', id).execute()
  }
}

/**
 * Returns the field rows of several forms with one query. The rows of each form are in display
 * order.
 */
const rowsOf = (ctx: Context, formIds: readonly number[]): Promise<Row[]> =>
  ctx.db
    .selectFrom('web_form_attributes as field')
    .innerJoin('attributes', 'attributes.id', 'field.attribute_id')
    .selectAll('field')
    .select(['attributes.code', 'attributes.name as attribute_name', 'attributes.type', 'attributes.entity_type'])
    .where('field.web_form_id', 'in', [...formIds])
    .orderBy('field.sort_order')
    .orderBy('field.id')
    .execute()

/**
 * Returns the records and options that the defaults of a form name. The attributes of the fields
 * have a foreign key.
 */
export async function referencesInDefaults(ctx: Context, formId: number): Promise<StoredReference[]> {
  const attributes = await possible(ctx)
  return (await rowsOf(ctx, [formId])).flatMap(({ attribute_id, default_value }) => {
    const attribute = attributes.get(attribute_id)
    return attribute && default_value !== null
      ? referencesInValue('attributes', attribute, JSON.parse(default_value))
      : []
  })
}

/** Returns the fields of a form for an update, with the record `by` in the place of `named`. */
export async function replacingInDefaults(
  ctx: Context,
  formId: number,
  named: NamedRecord,
  by: number,
): Promise<Input[]> {
  const attributes = await possible(ctx)
  return (await rowsOf(ctx, [formId])).map((row): Input => {
    const attribute = attributes.get(row.attribute_id)
    const lookup = attribute?.lookup ?? null
    if (lookup === null || entityOfLookup(lookup) !== named.entity || row.default_value === null) return { id: row.id }
    return { id: row.id, default_value: withId(JSON.parse(row.default_value), named.id, by) as Input['default_value'] }
  })
}

/** Returns the fields of each form by form id, in display order. */
export async function loadFields(ctx: Context, formIds: readonly number[]): Promise<Map<number, Field[]>> {
  const found = new Map<number, Field[]>(formIds.map((id) => [id, []]))
  for (const row of await rowsOf(ctx, formIds)) found.get(row.web_form_id)?.push(presentField(row))
  return found
}

const presentField = (row: Row): Field => ({
  id: row.id,
  attribute_id: row.attribute_id,
  attribute: {
    id: row.attribute_id,
    code: row.code,
    name: row.attribute_name,
    type: row.type,
    entity_type: row.entity_type,
  },
  name: row.name,
  placeholder: row.placeholder,
  is_required: row.is_required === 1,
  is_hidden: row.is_hidden === 1,
  default_value: presentDefault(row),
  sort_order: row.sort_order,
})
