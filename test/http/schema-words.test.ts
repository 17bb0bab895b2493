// The words of the documentation page about schemas: types, limits, values and fields.
import { describe, expect, it } from 'vitest'
import { outlineOf, tagDocument } from '../../src/http/docs/page-document.ts'
import type { ServedDocument } from '../../src/http/docs/served-document.ts'
import { contract } from '../support/contract.ts'

const { firstSentence, limitsOf, shapesOf, typeOf, valuesOf } = await import(
  '../../src/http/docs/browser/schema-words.js'
)

type Json = Record<string, any>

const schemas: Json = {
  Id: { type: 'integer', minimum: 1, maximum: 9007199254740991 },
  Where: {
    type: 'object',
    properties: { and: { type: 'array', items: { $ref: '#/components/schemas/Where' } }, id: { type: 'integer' } },
  },
  Label: { type: 'string', maxLength: 30, description: 'A label.' },
}
const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` })

describe('the type of a schema', () => {
  it.each([
    [{ type: 'string' }, 'text'],
    [{ type: 'string', format: 'date-time', nullable: true }, 'date and time or null'],
    [{ type: 'string', format: 'binary' }, 'file'],
    [{ type: 'boolean' }, 'true or false'],
    [ref('Id'), 'whole number'],
    [{ type: 'array', items: { type: 'array', items: { type: 'number' } } }, 'list of lists of numbers'],
    [{ type: 'array', items: ref('Label') }, 'list of texts'],
    [
      {
        anyOf: [
          { type: 'integer', nullable: true },
          { type: 'object', properties: { a: {} } },
        ],
      },
      'whole number or object or null',
    ],
    [{ enum: ['a', 'b'] }, 'text'],
    [{ enum: [1, 2] }, 'whole number'],
    [{ type: 'object', additionalProperties: { type: 'string' } }, 'object of texts by key'],
    [{ allOf: [ref('Label')], nullable: true }, 'text or null'],
    [ref('Where'), 'object'],
    [ref('Missing'), 'any value'],
    [{}, 'any value'],
  ])('%j is %s', (schema, expected) => {
    expect(typeOf(schema, schemas)).toBe(expected)
  })
})

describe('the limits of a schema', () => {
  it.each([
    [ref('Id'), []],
    [{ type: 'integer', minimum: 1, maximum: 100, default: 10 }, ['1 to 100', 'default 10']],
    [{ type: 'string', minLength: 3, maxLength: 3 }, ['exactly 3 characters']],
    [{ type: 'string', maxLength: 65535 }, ['up to 65,535 characters']],
    [{ type: 'number', minimum: 0, exclusiveMinimum: true, maximum: 99999999999.9999 }, ['more than 0']],
    [{ type: 'string', pattern: '^[A-Za-z]{2}$' }, ['matches ^[A-Za-z]{2}$']],
    [{ type: 'string', pattern: `^${'[a-z]?'.repeat(8)}$` }, []],
    [
      { type: 'array', maxItems: 20, uniqueItems: true, items: ref('Label') },
      ['up to 20 entries', 'up to 30 characters each', 'no entry twice'],
    ],
  ])('%j has %j', (schema, expected) => {
    expect(limitsOf(schema, schemas)).toEqual(expected)
  })
})

describe('the fields of a schema', () => {
  it('end at a recursive schema, and open one level at a time', () => {
    const [shape] = shapesOf(ref('Where'), schemas)
    expect(shape?.rows.map(({ name }) => name)).toEqual(['and', 'id'])
    expect(shapesOf(shape?.rows[0]?.schema ?? {}, schemas)).toEqual([shape])
  })

  it('are several shapes for several forms of an object, named by the value that tells them apart', () => {
    const form = (kind: string) => ({
      type: 'object',
      required: ['kind'],
      properties: { kind: { type: 'string', enum: [kind] }, label: ref('Label') },
    })
    const shapes = shapesOf({ oneOf: [form('a'), form('b'), { type: 'string' }] }, schemas)
    expect(shapes.map(({ label, rows }) => [label, ...rows.map(({ name, required }) => [name, required])])).toEqual([
      ['kind: a', ['kind', true], ['label', false]],
      ['kind: b', ['kind', true], ['label', false]],
    ])
    expect(shapes[0]?.rows[1]?.description).toBe('A label.')
  })

  it('have the values of an enum, also in a list and beside null', () => {
    expect(valuesOf({ type: 'array', items: { enum: [1, 2] } }, schemas)).toEqual([1, 2])
    expect(valuesOf({ anyOf: [{ enum: ['a'] }, { enum: ['a', 'b'] }] }, schemas)).toEqual(['a', 'b'])
    expect(valuesOf({ anyOf: [{ enum: ['a'] }, { type: 'string' }] }, schemas)).toEqual([])
  })
})

it('a description is split after its first sentence, not inside code', () => {
  expect(firstSentence('Sends `a. B` once. Then `c`.')).toEqual(['Sends `a. B` once.', 'Then `c`.'])
  expect(firstSentence('At most 1.5 of them')).toEqual(['At most 1.5 of them', ''])
})

it('no schema of the contract shows a bound of 2^53 or a long pattern', () => {
  const source = contract as unknown as ServedDocument
  const texts = new Set<string>()
  const look = (schema: Json, names: Json, depth: number): void => {
    texts.add(typeOf(schema, names))
    for (const each of limitsOf(schema, names)) texts.add(each)
    if (depth < 3)
      for (const { rows } of shapesOf(schema, names)) for (const each of rows) look(each.schema, names, depth + 1)
  }
  for (const tag of outlineOf(source).filter(({ name }) => ['Leads', 'Workflows', 'Quotes'].includes(name))) {
    const { components } = tagDocument(source, tag) as Json
    for (const schema of Object.values(components.schemas as Json)) look(schema as Json, components.schemas, 1)
  }
  expect(texts.size).toBeGreaterThan(30)
  expect([...texts].filter((each) => /9,?007,?199|matches .{31}/.test(each))).toEqual([])
})
