// The attributes of an entity as schemas: what the served contract says of `custom_attributes`, and what values are read and
// checked by. One source for both, so that the contract says what the server does.
import { type OpenReader, type OpenSchema, openReader } from '../../contract/input/open-schema.ts'
import type { FieldErrors } from '../../contract/output/problems.ts'
import type { Context, Origin } from '../../kernel/context.ts'
import { plainMarkdown } from '../../kernel/values/format.ts'
import type { Attribute } from './set.ts'
import { nullable } from './types/type.ts'
import { typeOf, valued } from './types.ts'

/** Name, and what the ids mean: `Industry. 1 = Automotive, 2 = Logistics`. Descriptions are read as Markdown, names are no part of it. */
function described(attribute: Attribute): string {
  const { lookup, options } = attribute
  const name = plainMarkdown(attribute.name)
  if (options.length > 0)
    return `${name}. ${options.map((option) => `${option.id} = ${plainMarkdown(option.name)}`).join(', ')}`
  return lookup === null ? name : `${name}. Ids of ${lookup.replaceAll('_', ' ')}`
}

/** An object with every attribute as it is written; what is required cannot be null. */
export function inputSchema(attributes: readonly Attribute[]): OpenSchema {
  const properties = valued(attributes).map(({ attribute, type }) => {
    const schema = type.input(attribute)
    return [
      attribute.code,
      { description: described(attribute), ...(attribute.isRequired ? schema : nullable(schema)) },
    ] as const
  })
  return { type: 'object', additionalProperties: false, properties: Object.fromEntries(properties) }
}

/** The codes a new record must have: not what has a default, nor what is false unless it is said to be true. */
export const neededCodes = (attributes: readonly Attribute[]): string[] =>
  valued(attributes)
    .filter(({ attribute }) => attribute.isRequired && attribute.initial === null && attribute.type !== 'boolean')
    .map(({ attribute }) => attribute.code)

/** An object with every attribute as it is shown: all of them are there, and any may be unset. */
export function outputSchema(attributes: readonly Attribute[]): OpenSchema {
  const properties = valued(attributes).map(
    ({ attribute, type }) =>
      [attribute.code, { description: described(attribute), ...nullable(type.output(attribute)) }] as const,
  )
  return {
    type: 'object',
    additionalProperties: false,
    required: properties.map(([code]) => code),
    properties: Object.fromEntries(properties),
  }
}

const readers = new WeakMap<readonly Attribute[], OpenReader>()

/** The reader of an entity's values. That one is required is a rule, since it may well be left out of an update. */
function readerOf({ contract }: Context['services'], attributes: readonly Attribute[]): OpenReader {
  const known = readers.get(attributes)
  if (known) return known
  const optional = attributes.map((attribute) => ({ ...attribute, isRequired: false }))
  const made = openReader(contract, 'custom_attributes', inputSchema(optional))
  readers.set(attributes, made)
  return made
}

const readingOf = ({ services: { config } }: Context) => ({ zone: config.timezone, strict: config.strict })

/** The bodies of the API are JSON (normalize.ts); rows of files, forms and actions of workflows have texts. */
const fromBody = new Set<Origin>(['api', 'session'])

/** The values of a body; `errors` are by field, `custom_attributes.industry`. */
export function readValues(
  ctx: Context,
  attributes: readonly Attribute[],
  sent: unknown,
): { values: Readonly<Record<string, unknown>>; errors: FieldErrors } {
  const { value, errors } = readerOf(ctx.services, attributes)(sent, {
    ...readingOf(ctx),
    exact: fromBody.has(ctx.origin),
  })
  return { values: (value ?? {}) as Record<string, unknown>, errors }
}

/** One value on its own, as a default is; `errors` are below the name of the field. */
export function readValue(
  ctx: Context,
  attribute: Attribute,
  field: string,
  sent: unknown,
): { value: unknown; errors: FieldErrors } {
  const type = typeOf(attribute)
  if (!type) return { value: null, errors: {} }
  return openReader(ctx.services.contract, field, nullable(type.input(attribute)))(sent, readingOf(ctx))
}
