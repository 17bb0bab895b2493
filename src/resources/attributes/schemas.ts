// Builds the JSON schemas of an entity's attributes. The served contract shows these schemas and
// the server validates values against them, so contract and validation always agree.
import { type OpenReader, type OpenSchema, openReader } from '../../contract/input/open-schema.ts'
import type { FieldErrors } from '../../contract/output/problems.ts'
import type { Context } from '../../kernel/context.ts'
import { perOwner } from '../../kernel/runtime/per-owner.ts'
import { plainMarkdown } from '../../kernel/values/format.ts'
import type { Attribute } from './attribute-set.ts'
import { withNamesIn } from './named-values.ts'
import { nullableSchema } from './types/value-type.ts'
import { valueTypeOf, withValueTypes } from './types.ts'

/**
 * Returns the description of an attribute: its name and the meaning of its ids, such as `Industry.
 * 1 = Automotive, 2 = Logistics`. Names are escaped because descriptions are Markdown.
 */
function descriptionOf(attribute: Attribute): string {
  const { lookup, options } = attribute
  const name = plainMarkdown(attribute.name)
  if (options.length > 0)
    return `${name}. ${options.map((option) => `${option.id} = ${plainMarkdown(option.name)}`).join(', ')}`
  return lookup === null ? name : `${name}. Ids of ${lookup.replaceAll('_', ' ')}`
}

/**
 * Returns the schema of custom attributes in a body. Required attributes do not accept null. With
 * `hasNames`, the schema also has the objects that name an option or a record; the server replaces
 * them by ids first.
 */
export function inputSchema(attributes: readonly Attribute[], hasNames = false): OpenSchema {
  const properties = withValueTypes(attributes).map(({ attribute, type }) => {
    const schema = hasNames ? withNamesIn(attribute, type.input(attribute)) : type.input(attribute)
    return [
      attribute.code,
      { description: descriptionOf(attribute), ...(attribute.isRequired ? schema : nullableSchema(schema)) },
    ] as const
  })
  return { type: 'object', additionalProperties: false, properties: Object.fromEntries(properties) }
}

/**
 * Returns the codes of the attributes that a create body must contain: the required ones without a
 * default. Booleans are not among them, because they default to false.
 */
export const requiredCodes = (attributes: readonly Attribute[]): string[] =>
  withValueTypes(attributes)
    .filter(({ attribute }) => attribute.isRequired && attribute.initial === null && attribute.type !== 'boolean')
    .map(({ attribute }) => attribute.code)

/**
 * Returns the schema of custom attributes in a reply. All attributes are present, and each may be
 * null.
 */
export function outputSchema(attributes: readonly Attribute[]): OpenSchema {
  const properties = withValueTypes(attributes).map(
    ({ attribute, type }) =>
      [attribute.code, { description: descriptionOf(attribute), ...nullableSchema(type.output(attribute)) }] as const,
  )
  return {
    type: 'object',
    additionalProperties: false,
    required: properties.map(([code]) => code),
    properties: Object.fromEntries(properties),
  }
}

/**
 * Returns the function that parses and validates an entity's values. The schema requires no
 * attribute, because an update may omit any; `planValues` checks required attributes.
 */
const readerOf = perOwner((attributes: readonly Attribute[]) =>
  perOwner((contract: object): OpenReader => {
    const optional = attributes.map((attribute) => ({ ...attribute, isRequired: false }))
    return openReader(contract, 'custom_attributes', inputSchema(optional))
  }),
)

const readingOf = ({ services: { config } }: Context) => ({ zone: config.timezone, strict: config.strict })

/**
 * Parses the custom attributes of a body. The keys of `errors` are paths such as
 * `custom_attributes.industry`.
 */
export function parseValues(
  ctx: Context,
  attributes: readonly Attribute[],
  sent: unknown,
): { values: Readonly<Record<string, unknown>>; errors: FieldErrors } {
  const { value, errors } = readerOf(attributes)(ctx.services.contract)(sent, readingOf(ctx))
  return { values: (value ?? {}) as Record<string, unknown>, errors }
}

/**
 * Parses a single value, such as a default. The keys of `errors` are paths that begin with `field`.
 */
export function parseValue(
  ctx: Context,
  attribute: Attribute,
  field: string,
  sent: unknown,
): { value: unknown; errors: FieldErrors } {
  const type = valueTypeOf(attribute)
  if (!type) return { value: null, errors: {} }
  return openReader(ctx.services.contract, field, nullableSchema(type.input(attribute)))(sent, readingOf(ctx))
}
