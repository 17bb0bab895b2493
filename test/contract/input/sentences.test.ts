// Every keyword of a schema that can refuse a value has an error sentence of its own.
import { expect, it } from 'vitest'
import { grammar } from '../../../codegen/grammar.ts'
import { newInputAjv } from '../../../src/contract/ajv.ts'
import { fieldErrors } from '../../../src/contract/input/validation-errors.ts'

type Refused = [keyword: unknown, value: unknown, around?: object]

/** For each keyword that refuses values: the value in the schema, and a value that it refuses. */
const refused = new Map<string, Refused>(
  Object.entries<Refused>({
    type: ['integer', 'a'],
    format: ['date', 'a'],
    'x-value': ['phone', 'a'],
    const: ['a', 'b'],
    enum: [['a'], 'b'],
    pattern: ['^a$', 'b'],
    minLength: [2, 'a'],
    maxLength: [1, 'ab'],
    multipleOf: [5, 3],
    minimum: [5, 3],
    exclusiveMinimum: [3, 3],
    maximum: [1, 3],
    exclusiveMaximum: [3, 3],
    minItems: [2, []],
    maxItems: [1, [1, 2]],
    uniqueItems: [true, [1, 1]],
    items: [false, [1, 2], { prefixItems: [{}] }],
    prefixItems: [[{ type: 'string' }], [1]],
    contains: [{ type: 'string' }, [1]],
    minContains: [2, ['a'], { contains: { type: 'string' } }],
    maxContains: [1, ['a', 'b'], { contains: { type: 'string' } }],
    unevaluatedItems: [false, [1, 2], { prefixItems: [{}] }],
    minProperties: [2, { a: 1 }],
    maxProperties: [1, { a: 1, b: 1 }],
    required: [['b'], { a: 1 }],
    dependentRequired: [{ a: ['b'] }, { a: 1 }],
    propertyNames: [{ pattern: '^b$' }, { a: 1 }],
    additionalProperties: [false, { a: 1 }],
    unevaluatedProperties: [false, { a: 1 }],
    properties: [{ a: false }, { a: 1 }],
    patternProperties: [{ a: false }, { a: 1 }],
    dependentSchemas: [{ a: false }, { a: 1 }],
    allOf: [[{ type: 'string' }], 1],
    anyOf: [[{ minimum: 5 }, { type: 'string' }], 1],
    oneOf: [[{ minimum: 1 }, { maximum: 1 }], 1],
    not: [{ type: 'integer' }, 1],
    if: [false, 1, { else: { type: 'string' } }],
    else: [{ type: 'string' }, 1, { if: false }],
  }),
).set('then', [{ type: 'string' }, 1, { if: true }])

/** The keywords that describe a value, and those that only have an effect beside another one. */
const describing = `$ref $id $schema $anchor $comment $defs title description externalDocs deprecated readOnly writeOnly
  contentMediaType contentEncoding default discriminator xml example examples`.split(/\s+/)

/** Of our own keywords, `x-value` alone refuses values. */
const isAsserting = (name: string): boolean => (name.startsWith('x-') ? name === 'x-value' : !describing.includes(name))

it.each([...(grammar.get('schema')?.keys() ?? [])].filter(isAsserting))('%s has a sentence', (name) => {
  expect([...refused.keys()], `write into this file a value of ${name} and a value that it refuses`).toContain(name)
  const [keyword, value, around] = refused.get(name) ?? []
  const field = { ...around, [name]: keyword }
  const validate = newInputAjv().compile({ properties: { requestBody: { properties: { field } } } })
  expect(validate({ requestBody: { field: value } })).toBe(false)
  const sentences = Object.values(fieldErrors(validate.errors ?? [])).flat()
  expect(sentences).not.toEqual([])
  expect(sentences.join(' ')).not.toMatch(/Is not valid|undefined/)
})
