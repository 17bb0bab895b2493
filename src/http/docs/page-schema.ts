// Converts schemas from OpenAPI 3.1 to 3.0 and composes example values. Swagger UI resolves and
// renders a 3.0 document many times faster than a 3.1 document.
import type { ServedComponents, ServedSchema } from './served-document.ts'

const isNull = ({ type }: ServedSchema): boolean => type === 'null'

/** The format of texts with an `x-value`, for the page's words about types. */
const formatByValue: Readonly<Record<string, string>> = {
  date: 'date',
  'date-time': 'date-time',
  instant: 'date-time',
  email: 'email',
  url: 'uri',
}

/** Returns an OpenAPI 3.0 schema that accepts the same values, without `x-` keys. */
export function downLevel(schema: ServedSchema): ServedSchema {
  const { $ref, type, const: constant, examples, exclusiveMinimum, ...others } = schema
  const made: ServedSchema = Object.fromEntries(Object.entries(others).filter(([key]) => !key.startsWith('x-')))
  const format = formatByValue[String(schema['x-value'])]
  if (format !== undefined) made.format ??= format
  if (examples?.[0] !== undefined) made.example = examples[0]
  if (constant !== undefined) made.enum = [constant]
  if (typeof exclusiveMinimum === 'number') Object.assign(made, { minimum: exclusiveMinimum, exclusiveMinimum: true })
  for (const word of ['anyOf', 'oneOf'] as const) if (schema[word]) addAlternatives(made, word, schema[word])
  if (schema.allOf) made.allOf = schema.allOf.map(downLevel)
  if (schema.items) made.items = downLevel(schema.items)
  if (typeof schema.additionalProperties === 'object')
    made.additionalProperties = downLevel(schema.additionalProperties)
  if (schema.properties)
    made.properties = Object.fromEntries(Object.entries(schema.properties).map(([key, each]) => [key, downLevel(each)]))
  addType(made, type)
  // OpenAPI 3.0 ignores keys beside a `$ref`, so a `$ref` with a description needs `allOf`.
  if ($ref === undefined) return made
  return Object.keys(made).length === 0 ? { $ref } : { ...made, allOf: [{ $ref }] }
}

function addType(made: ServedSchema, type: ServedSchema['type']): void {
  const types = [type ?? []].flat()
  const others = types.filter((each) => each !== 'null')
  if (others.length < types.length) made.nullable = true
  if (others.length === 1) made.type = others[0] as string
  if (others.length > 1) made.anyOf = others.map((each) => ({ type: each }))
}

function addAlternatives(made: ServedSchema, word: 'anyOf' | 'oneOf', all: ServedSchema[]): void {
  const others = all.filter((each) => !isNull(each)).map(downLevel)
  delete made[word]
  if (others.length < all.length) made.nullable = true
  const [only] = others
  if (others.length > 1) made[word] = others
  else if (only?.$ref !== undefined) made.allOf = [only]
  else Object.assign(made, { ...only, ...made })
}

const byFormat: Readonly<Record<string, string>> = {
  'date-time': '2026-03-01T09:30:00.000Z',
  date: '2026-03-01',
  email: 'ada@example.com',
  uri: 'https://example.com',
  uuid: '0b0f3a52-6f43-4f0e-9a55-5d3d4c1f2a10',
  binary: '(bytes)',
}

/** Returns the example of a schema, or composes one. */
export function exampleOf(schema: ServedSchema, components: ServedComponents, depth = 0): unknown {
  const { $ref, examples, enum: values, const: constant, properties, items } = schema
  if (examples?.[0] !== undefined) return examples[0]
  if (constant !== undefined) return constant
  if (values?.[0] !== undefined) return values[0]
  if ($ref !== undefined) {
    const target = components.schemas[$ref.slice($ref.lastIndexOf('/') + 1)]
    return target === undefined || depth > 8 ? null : exampleOf(target, components, depth + 1)
  }
  const [alternative] = (schema.anyOf ?? schema.oneOf ?? schema.allOf ?? []).filter((each) => !isNull(each))
  if (alternative) return exampleOf(alternative, components, depth + 1)
  if (properties) {
    const { required = Object.keys(properties) } = schema
    const shown = Object.entries(properties).filter(([key]) => required.includes(key))
    return Object.fromEntries(shown.map(([key, each]) => [key, exampleOf(each, components, depth + 1)]))
  }
  if (items) return [exampleOf(items, components, depth + 1)]
  return plainExample(schema)
}

function plainExample({ type, format, minimum, description }: ServedSchema): unknown {
  const [first] = [type ?? []].flat()
  if (first === 'string') return byFormat[format ?? ''] ?? description ?? 'text'
  if (first === 'integer' || first === 'number') return minimum ?? 1
  if (first === 'boolean') return true
  if (first === 'array') return []
  return first === 'object' ? {} : null
}
