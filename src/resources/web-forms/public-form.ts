// A form as visitors see it: the visible fields and their choices. Hidden fields, and
// fields whose choices are not public, are not shown. A submission stores their default values.
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import type { Texts } from '../../texts/texts.ts'
import { type Attribute, attributeSet, attributesOf } from '../attributes/attribute-set.ts'
import { listChoosable } from '../attributes/lookups.ts'
import { isFieldShown, isOrganizationName, requiresValue } from './field-visibility.ts'
import { loadFields } from './fields.ts'

const maxChoices = 500

export interface PublicField {
  entity: 'persons' | 'leads'
  /** The key under which a submission sends the value. */
  key: string
  attribute: Attribute
  label: string
  placeholder: string | null
  isRequired: boolean
  isShown: boolean
  /** The initial value of the field; null when it has none. */
  initial: unknown
  options: readonly { id: number; name: string }[]
}

export interface PublicForm {
  formId: string
  /** The language of the form; null if it is that of the installation. */
  language: string | null
  texts: Texts
  title: string
  description: string | null
  button: string
  success: { action: string; content: string }
  createsLead: boolean
  colors: Record<
    | 'background_color'
    | 'form_background_color'
    | 'form_title_color'
    | 'form_submit_button_color'
    | 'attribute_label_color',
    string | null
  >
  fields: readonly PublicField[]
  /**
   * The ids of required attributes that the form does not show. Submissions may omit these
   * attributes.
   */
  excused: ReadonlySet<number>
}

const noForm = (): Problem => new Problem('not_found', 'There is no such form.')

const activeForm = ({ db }: Context, formId: string) =>
  db.selectFrom('web_forms').where('form_id', '=', formId).where('is_active', '=', 1)

/** Throws 404 unless an active form has this public id. */
export async function requireActiveForm(ctx: Context, formId: string): Promise<void> {
  if (!(await activeForm(ctx, formId).select('id').executeTakeFirst())) throw noForm()
}

/**
 * Returns the active form with this public id. Throws 404 for inactive forms too, so that callers
 * cannot tell whether such a form exists.
 */
export async function loadPublicForm(ctx: Context, formId: string): Promise<PublicForm> {
  const row = await activeForm(ctx, formId).selectAll().executeTakeFirst()
  if (!row) throw noForm()
  const fields: PublicField[] = []
  const attributes = [...(await attributesOf(ctx, 'persons')), ...(await attributesOf(ctx, 'leads'))]
  for (const field of (await loadFields(ctx, [row.id])).get(row.id) ?? []) {
    const attribute = attributes.find(({ id }) => id === field.attribute_id)
    if (attribute) fields.push(await openField(ctx, attribute, field))
  }
  return {
    formId: row.form_id,
    language: row.language,
    texts: await ctx.services.textsFor(ctx, row.language),
    title: row.title,
    description: row.description,
    button: row.submit_button_label,
    success: { action: row.submit_success_action, content: row.submit_success_content },
    createsLead: row.create_lead === 1,
    colors: {
      background_color: row.background_color,
      form_background_color: row.form_background_color,
      form_title_color: row.form_title_color,
      form_submit_button_color: row.form_submit_button_color,
      attribute_label_color: row.attribute_label_color,
    },
    fields,
    excused: await excusedBy(ctx, fields),
  }
}

async function excusedBy(ctx: Context, fields: readonly PublicField[]): Promise<ReadonlySet<number>> {
  const { own } = await attributeSet(ctx)
  const asked = new Set(fields.flatMap(({ attribute, isShown }) => (isShown ? attribute.id : [])))
  const all = (['persons', 'leads', 'organizations'] as const).flatMap((kind) => own.get(kind) ?? [])
  return new Set(all.flatMap(({ id, isRequired }) => (isRequired && !asked.has(id) ? id : [])))
}

async function openField(ctx: Context, attribute: Attribute, field: Schema<'WebFormAttribute'>): Promise<PublicField> {
  const isOrganization = isOrganizationName(attribute, field)
  const isVisible = isFieldShown(attribute, field)
  return {
    entity: attribute.entity as PublicField['entity'],
    key: isOrganization ? 'organization_name' : attribute.code,
    attribute: isOrganization ? { ...attribute, type: 'text', lookup: null } : attribute,
    label: field.name ?? attribute.name,
    placeholder: field.placeholder,
    // The attribute may have become required after the form was saved.
    isRequired: field.is_required || requiresValue(attribute),
    isShown: isVisible,
    initial: isOrganization ? null : (field.default_value ?? null),
    options:
      !isVisible || isOrganization
        ? []
        : attribute.lookup === null
          ? attribute.options
          : await listChoosable(ctx, attribute.lookup, maxChoices),
  }
}

export const presentPublicForm = (form: PublicForm): Schema<'PublicWebForm'> => ({
  form_id: form.formId,
  language: form.texts.locale,
  title: form.title,
  description: form.description,
  submit_button_label: form.button,
  background_color: form.colors.background_color,
  form_background_color: form.colors.form_background_color,
  form_title_color: form.colors.form_title_color,
  form_submit_button_color: form.colors.form_submit_button_color,
  attribute_label_color: form.colors.attribute_label_color,
  fields: form.fields.filter(({ isShown }) => isShown).map(presentField),
})

const presentField = (field: PublicField): Schema<'PublicWebFormField'> => ({
  entity_type: field.entity,
  code: field.key,
  type: field.attribute.type,
  label: field.label,
  placeholder: field.placeholder,
  is_required: field.isRequired,
  default_value: field.initial,
  options: field.options.map(({ id, name }) => ({ id, name })),
})
