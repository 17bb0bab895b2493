// Required attributes without a field on a form. Submissions without these attributes
// are accepted. A user who saves the form, or makes an attribute required, gets a warning.
import type { Schema } from '../../contract/types.ts'
import type { Context, Warning } from '../../kernel/context.ts'
import { type Attribute, attributesOf, customAttributes, type EntityType } from '../attributes/attribute-set.ts'
import { isFieldShown, requiresValue } from './field-visibility.ts'

type Form = Pick<Schema<'WebForm'>, 'create_lead' | 'attributes'>
type Kind = Extract<EntityType, 'persons' | 'leads' | 'organizations'>

/**
 * The types of records that a submission may create. A submission creates an organization only if
 * the form has a field for the name of the organization.
 */
const kinds: readonly Kind[] = ['persons', 'leads', 'organizations']

function makes({ create_lead, attributes }: Form, kind: Kind): boolean {
  if (kind === 'organizations')
    return attributes.some(
      ({ attribute: { code, entity_type } }) => `${entity_type}.${code}` === 'persons.organization_id',
    )
  return kind === 'persons' || create_lead
}

/**
 * All attributes of persons and leads, and the custom attributes by entity. Loaded once for many
 * forms.
 */
export interface FormAttributes {
  all: readonly Attribute[]
  own: Readonly<Record<Kind, readonly Attribute[]>>
}

export const loadFormAttributes = async (ctx: Context): Promise<FormAttributes> => ({
  all: [...(await attributesOf(ctx, 'persons')), ...(await attributesOf(ctx, 'leads'))],
  own: {
    persons: await customAttributes(ctx, 'persons'),
    leads: await customAttributes(ctx, 'leads'),
    organizations: await customAttributes(ctx, 'organizations'),
  },
})

/**
 * Returns the required custom attributes that have no visible field and no default value on the
 * form.
 */
export function missingAttributes({ all, own }: FormAttributes, form: Form): Attribute[] {
  const given = new Set<number>()
  for (const field of form.attributes) {
    const attribute = all.find(({ id }) => id === field.attribute_id)
    if (attribute && (isFieldShown(attribute, field) || field.default_value !== null)) given.add(attribute.id)
  }
  return kinds
    .filter((kind) => makes(form, kind))
    .flatMap((kind) => own[kind].filter((each) => requiresValue(each) && !given.has(each.id)))
}

const nouns: Record<Kind, string> = { persons: 'Persons', leads: 'Leads', organizations: 'Organizations' }

export const missingAttributeWarnings = (known: FormAttributes, form: Form): Warning[] =>
  missingAttributes(known, form).map(({ entity, name }) => ({
    field: 'attributes',
    message: `${nouns[entity as Kind]} require ${name}, which the form does not ask for. Submissions without it are accepted.`,
  }))
