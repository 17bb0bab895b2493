// The documents that the reference page loads: they are valid OpenAPI 3.0, contain every operation
// once, and their examples are valid in the contract.
import { describe, expect, it } from 'vitest'
import { outlineOf, tagDocument } from '../../src/http/docs/page-document.ts'
import { downLevel } from '../../src/http/docs/page-schema.ts'
import type { ServedDocument } from '../../src/http/docs/served-document.ts'
import { schemaFindings } from '../contract/send.ts'
import { attributes } from '../properties/attribute-values.ts'
import { contract } from '../support/contract.ts'
import { facts } from '../support/schema.ts'
import { useSharedServer } from '../support/using.ts'

type Json = Record<string, any>

const source = contract as unknown as ServedDocument
const outline = outlineOf(source)
const documents = outline.map((tag) => tagDocument(source, tag) as Json)
const operations = documents.flatMap(({ paths }) =>
  Object.values(paths as Json).flatMap((item) => Object.values(item as Json)),
)

/** The list of each entity with custom attributes: the slug of its tag, and its operationId. */
const lists: Record<string, [tag: string, operationId: string]> = {
  leads: ['leads', 'listLeads'],
  persons: ['persons', 'listPersons'],
  organizations: ['organizations', 'listOrganizations'],
  products: ['products', 'listProducts'],
  quotes: ['quotes', 'listQuotes'],
  warehouses: ['warehouses', 'listWarehouses'],
}

/** Calls `look` for a value and all nested objects, except those in examples. */
function walk(value: unknown, look: (object: Json) => void): void {
  if (typeof value !== 'object' || value === null) return
  if (!Array.isArray(value)) look(value as Json)
  for (const [key, each] of Object.entries(value)) if (key !== 'example') walk(each, look)
}

describe('the outline', () => {
  it('has every operation once, with its parameters and problem codes', () => {
    const all = outline.flatMap((tag) => tag.operations)
    expect(all.map(({ id }) => id).sort()).toEqual(facts.map(([id]) => id).sort())
    const list = all.find(({ id }) => id === 'listLeads')
    expect(list?.parameters).toContain('lead_value[gte]')
    expect(list?.codes).toContain('rate_limited')
  })
})

describe('the documents of the tags', () => {
  it('hold every operation of the contract once', () => {
    expect(operations.map(({ operationId }) => operationId).sort()).toEqual(facts.map(([id]) => id).sort())
  })

  it('use only what OpenAPI 3.0 knows, and refer only to their own schemas', () => {
    const findings: string[] = []
    for (const { components, paths } of documents)
      walk([paths, components], (object) => {
        const { type, examples, $ref } = object
        if (Array.isArray(type) || type === 'null' || Array.isArray(examples)) findings.push(JSON.stringify(object))
        if (typeof $ref !== 'string') return
        if (Object.keys(object).length > 1) findings.push(JSON.stringify(object))
        if (components.schemas[$ref.replace('#/components/schemas/', '')] === undefined) findings.push($ref)
      })
    expect(findings).toEqual([])
  })

  it('have parameters without examples and defaults, which Swagger UI would send', () => {
    const findings: string[] = []
    for (const { operationId, parameters } of operations)
      for (const { name, schema } of parameters as Json[])
        if (schema.$ref !== undefined || 'example' in schema || 'default' in schema)
          findings.push(`${operationId} ${name}`)
    expect(findings).toEqual([])
  })

  it('have examples that the contract accepts', () => {
    const examples = new Map<string, unknown>()
    for (const { requestBody, responses } of operations)
      for (const { content = {} } of [requestBody ?? {}, ...Object.values(responses as Json)])
        for (const { schema, example } of Object.values(content as Json) as Json[])
          if (schema.$ref !== undefined && example !== undefined) examples.set(schema.$ref.split('/').pop(), example)
    expect(examples.size).toBeGreaterThan(100)
    expect([...examples].flatMap(([name, example]) => schemaFindings(name, example))).toEqual([])
  }, 60_000)

  it('fold the errors, and fill in no value that "Try it out" would send', () => {
    for (const { operationId, responses, parameters, 'x-errors': errors } of operations) {
      expect(
        Object.keys(responses).every((status) => status.startsWith('2') || status === 'default'),
        operationId,
      ).toBe(true)
      expect(errors.length, operationId).toBeGreaterThan(0)
      for (const { name, schema } of parameters)
        expect([name, schema.default, schema.example, schema.type === 'object']).toEqual([
          name,
          undefined,
          undefined,
          false,
        ])
    }
    const create = operations.find(({ operationId }) => operationId === 'createLead')
    expect(create['x-errors'].find(({ status }: Json) => status === '409').codes).toContain('unique_violation')
    expect(create['x-related'].map(({ id }: Json) => id)).toEqual(['listLeads', 'getLead', 'updateLead', 'deleteLead'])
  })
})

describe('the documents of an installation with attributes of all types', () => {
  const server = useSharedServer()

  it('have one text parameter for each attribute that a list can filter by', async () => {
    for (const entity of Object.keys(lists))
      for (const [type, more] of attributes)
        await server.admin.post('/settings/attributes', {
          ...{ code: `a_${type}`, name: `An ${type}`, type, entity_type: entity },
          ...more,
        })
    for (const [entity, [tag, operationId]] of Object.entries(lists)) {
      const { body, text } = await server.admin.get(`/documentation/tags/${tag}.json`)
      const listed = Object.values(body.paths as Json)
        .flatMap((item) => Object.values(item as Json))
        .find((each) => each.operationId === operationId)
      const own = listed.parameters.filter(({ name }: Json) => name.startsWith('custom_attributes'))
      expect(own.length, `${entity} ${text.slice(0, 200)}`).toBeGreaterThan(10)
      for (const { name, schema, 'x-field': field, description } of own) {
        expect([name, schema]).toEqual([
          expect.stringMatching(/^custom_attributes\[a_\w+\]$/),
          { type: 'string', maxLength: 2000 },
        ])
        expect([field, description]).toEqual(['custom_attributes', expect.stringContaining('An ')])
      }
    }
  })
})

describe('a schema of OpenAPI 3.1', () => {
  it.each([
    [
      { type: ['string', 'null'], examples: ['a'] },
      { type: 'string', nullable: true, example: 'a' },
    ],
    [{ type: ['string', 'integer'] }, { anyOf: [{ type: 'string' }, { type: 'integer' }] }],
    [{ const: 3 }, { enum: [3] }],
    [
      { type: 'number', exclusiveMinimum: 0 },
      { type: 'number', minimum: 0, exclusiveMinimum: true },
    ],
    [{ anyOf: [{ $ref: '#/a' }, { type: 'null' }] }, { allOf: [{ $ref: '#/a' }], nullable: true }],
    [{ anyOf: [{ type: 'string', maxLength: 3 }, { type: 'null' }] }, { type: 'string', maxLength: 3, nullable: true }],
    [
      { $ref: '#/a', description: 'b' },
      { allOf: [{ $ref: '#/a' }], description: 'b' },
    ],
    [{ $ref: '#/a', 'x-hint': 'c' }, { $ref: '#/a' }],
  ])('%j becomes %j', (schema, expected) => {
    expect(downLevel(schema)).toEqual(expected)
  })
})
