// Generates invalid bodies for invalid.test.ts from the contract. Each body violates its schema in
// exactly one way.
import { fill, type Known } from '../support/given.ts'
import { follow, isReference, requiredOf, type SchemaObject, sample, typesOf } from '../support/schema.ts'

export interface Breakage {
  /** The dotted path of the only field that the reply must name. */
  field: string
  what: string
  /** The whole invalid value. */
  value: unknown
  /** Whether the reply must contain "Did you mean". */
  hint?: boolean
}

type Json = Record<string, unknown>

const wrongTypes: [type: string, value: unknown][] = [
  ['string', 'demo'],
  ['object', {}],
  ['integer', 42],
  ['array', []],
]

/** Returns the invalid variants of a valid value, at every depth. */
export function* breakagesOf(shape: SchemaObject | undefined, valid: unknown): Generator<Breakage> {
  const schema = follow(shape)
  if (schema.format === 'binary') {
    yield { field: '', what: 'is an empty file', value: '' }
    return
  }
  const branches = (schema.anyOf ?? schema.oneOf ?? []).map(follow)
  const types = branches.length > 0 ? branches.flatMap(typesOf) : typesOf(schema)
  // A schema without a type accepts any value.
  if (types.length === 0 && schema.enum === undefined && branches.length === 0) return
  const fits = (type: string) => types.includes(type) || (type === 'integer' && types.includes('number'))
  const [simple, other] = wrongTypes.filter(([type]) => !fits(type))
  for (const [, value] of [simple, other, fits('null') ? undefined : (['null', null] as const)].filter(
    (each) => each !== undefined,
  )) {
    yield { field: '', what: `is ${JSON.stringify(value)}`, value }
  }
  // If one of several properties is required, the error names the first property.
  for (const [index, branch] of branches.entries())
    for (const each of within(branch, isOf(branch, valid) ? valid : sample(branch)))
      if ((index === 0 || each.what !== 'is missing') && !(fits('null') && each.value === '')) yield each
  if (branches.length === 0) yield* within(schema, valid)
}

/** Returns whether the value is an object with the required properties of the branch. */
const isOf = (branch: SchemaObject, valid: unknown): boolean =>
  requiredOf(branch).length > 0 && requiredOf(branch).every((name) => Object.hasOwn(Object(valid), name))

function* within(schema: SchemaObject, valid: unknown): Generator<Breakage> {
  const types = typesOf(schema)
  if (types.includes('object'))
    yield* ofObject(schema, typeof valid === 'object' && valid !== null ? (valid as Json) : {})
  else if (types.includes('array')) yield* ofArray(schema, Array.isArray(valid) ? valid[0] : undefined)
  else for (const [what, value] of scalars(schema)) yield { field: '', what, value }
}

function* ofObject(schema: SchemaObject, valid: Json): Generator<Breakage> {
  const properties = schema.properties ?? {}
  for (const [name, property] of Object.entries(properties)) {
    for (const each of breakagesOf(property, valid[name] ?? sample(property))) {
      yield { ...each, field: join(name, each.field), value: { ...valid, [name]: each.value } }
    }
  }
  for (const name of requiredOf(schema)) {
    const { [name]: _left, ...rest } = valid
    yield { field: name, what: 'is missing', value: rest }
  }
  for (const [name, property] of Object.entries(properties)) {
    const { type, format = '' } = follow(property)
    if (type !== 'string' || ['password', 'binary'].includes(format)) continue
    for (const text of ['', '  ']) yield { field: name, what: 'is blank', value: { ...valid, [name]: text } }
  }
  if (schema.additionalProperties !== false) return
  const [known] = Object.keys(properties)
  const typo = known === undefined ? 'anything' : `${known}qq`
  yield { field: typo, what: 'is unknown', value: { ...valid, [typo]: 1 }, hint: known !== undefined }
  for (const evil of ['__proto__', 'constructor', 'toString']) {
    yield {
      field: evil,
      what: 'is unknown',
      value: Object.defineProperty({ ...valid }, evil, { value: {}, enumerable: true }),
    }
  }
}

function* ofArray(schema: SchemaObject, first: unknown): Generator<Breakage> {
  const { items, minItems, maxItems } = schema as SchemaObject & { minItems?: number; maxItems?: number }
  if (minItems !== undefined && minItems > 0) yield { field: '', what: 'is empty', value: [] }
  if (maxItems !== undefined)
    yield { field: '', what: 'has too many entries', value: Array.from({ length: maxItems + 1 }, () => sample(items)) }
  for (const each of breakagesOf(items, first ?? sample(items)))
    yield { ...each, field: join('0', each.field), value: [each.value] }
}

function* scalars(schema: SchemaObject): Generator<[what: string, value: unknown]> {
  const { minimum, maximum, minLength, maxLength, format, pattern } = schema as SchemaObject &
    Record<'minimum' | 'maximum' | 'minLength' | 'maxLength', number | undefined>
  const types = typesOf(schema)
  // An empty text clears a value that may be null.
  const empty = types.includes('null') ? [] : ['']
  if (types.includes('integer')) yield ['has a fraction', 1.5]
  if (types.includes('boolean'))
    for (const value of [...empty, 'yes', 'TRUE', 2, -1]) yield [`is ${JSON.stringify(value)}`, value]
  if (types.includes('number') || types.includes('integer'))
    for (const value of [...empty, '1e3', '0x10', 'twelve']) yield [`is "${value}"`, value]
  if (types.includes('integer')) for (const value of ['1.5', '01', '+1']) yield [`is "${value}"`, value]
  if (minimum !== undefined) yield ['is too small', minimum - 1]
  if (maximum !== undefined) yield ['is too large', maximum > 1e15 ? 1e20 : Math.floor(maximum) + 1]
  if (format === 'money' || format === 'decimal') yield ['has five decimals', 1.23456]
  if (!types.includes('string')) return
  if (maxLength !== undefined) yield ['is too long', 'x'.repeat(maxLength + 1)]
  if (minLength !== undefined && minLength > 1) yield ['is too short', 'x'.repeat(minLength - 1)]
  if (pattern !== undefined) yield ['does not match', 'No Such Form!']
  if (schema.enum !== undefined) yield ['is none of the choices', 'no-such-choice']
  if (format !== undefined && format !== 'password') yield ['has a bad format', 'no such form']
  if (format === 'date' || format === 'date-time')
    yield ['is not a day of the calendar', format === 'date' ? '2026-02-30' : '2026-02-30T10:00:00Z']
  if (!schema.enum && pattern === undefined && (format === undefined || format === 'password'))
    yield ['has a control character', 'demo\u0007demo']
}

const join = (first: string, rest: string): string => (rest === '' ? first : `${first}.${rest}`)

/** Returns variants of the body with one reference to an unknown record each. */
export function* danglingReferences(
  shape: SchemaObject | undefined,
  valid: unknown,
  known: Known,
): Generator<Breakage> {
  const outer = follow(shape)
  const schema = outer.anyOf?.map(follow)[0] ?? outer
  const value = (typeof valid === 'object' && valid !== null && !Array.isArray(valid) ? valid : {}) as Json
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const target = follow(property)
    if (isReference(name, property)) {
      const isList = typesOf(target).includes('array')
      yield {
        field: isList ? `${name}.0` : name,
        what: 'names nothing',
        value: { ...value, [name]: isList ? [unknownId] : unknownId },
      }
    } else if (typesOf(target).includes('array')) {
      for (const each of danglingReferences(target.items, fill(sample(target.items), target.items, known), known))
        yield { ...each, field: `${name}.0.${each.field}`, value: { ...value, [name]: [each.value] } }
    } else {
      for (const each of danglingReferences(property, value[name] ?? fill(sample(property), property, known), known))
        yield { ...each, field: `${name}.${each.field}`, value: { ...value, [name]: each.value } }
    }
  }
}

/** An id that no record has. */
export const unknownId = 999_999_999

/** Returns invalid texts for a query parameter. */
export function badTexts(schema: SchemaObject): string[] {
  const { minimum, maximum, minLength, maxLength, minItems, maxItems, format } = schema as SchemaObject &
    Record<'minimum' | 'maximum' | 'minLength' | 'maxLength' | 'minItems' | 'maxItems', number | undefined>
  const [type] = typesOf(schema)
  if (type === 'array') {
    const items = follow(schema.items)
    const listed = badTexts(items).filter((text) => text !== '' && !text.includes(','))
    const good = String(sample(items))
    const many =
      maxItems === undefined || maxItems > 200 ? [] : [Array.from({ length: maxItems + 1 }, () => good).join(',')]
    return [
      ...listed,
      ...listed.slice(0, 1).map((text) => `${good},${text}`),
      ...many,
      ...((minItems ?? 0) > 0 ? [''] : []),
    ]
  }
  const texts: string[] = []
  if (type === 'integer' || type === 'number') texts.push('seven', '', '1,2', 'NaN')
  if (type === 'integer') texts.push('1.5')
  if (minimum !== undefined) texts.push(String(minimum - 1))
  if (maximum !== undefined) texts.push(maximum > 1e15 ? '1e20' : String(maximum + 1))
  if (format === 'money' || format === 'decimal') texts.push('1.23456')
  if (type === 'boolean') texts.push('maybe', '', '2')
  if (type === 'string') {
    if (schema.enum !== undefined) texts.push('no-such-choice', '-')
    if (format !== undefined) texts.push('soon', '2026-02-30', '')
    if (maxLength !== undefined) texts.push('x'.repeat(maxLength + 1))
    if ((minLength ?? 0) > 0) texts.push('')
  }
  return texts
}
