// The gate of released contracts: today's contract breaks no client of the last release, twenty
// changes that would break one are stopped with a sentence, and a rename and a removal pass through
// two pretended releases only in their order.
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { gateFindings, gateOfRepository } from '../../codegen/compat/gate.ts'
import { versionOfNewParts } from '../../codegen/compat/versions.ts'
import type { ContractDocument } from '../../codegen/read.ts'
import { contract } from '../support/contract.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

type Json = Record<string, any>

const fresh = (version = '1.0.0'): Json => {
  const made = structuredClone(contract) as Json
  made.info.version = version
  return made
}
const gate = (before: Json, now: Json, { accepted = '', day = '2026-12-01' } = {}): string[] =>
  gateFindings({ before: before as ContractDocument, now: now as ContractDocument, accepted, today: day })

describe('today’s contract', () => {
  it('breaks no client of the last release, except by the lines of breaking.txt in a version that may', () => {
    expect(gateOfRepository(root, contract as ContractDocument)).toEqual([])
  })
})

const schema = (document: Json, name: string): Json => document.components.schemas[name]
const operation = (document: Json, path: string, method = 'get'): Json => document.paths[`/api/admin${path}`][method]
const parameter = (document: Json, path: string, name: string): Json => {
  const found = operation(document, path).parameters.find((each: Json) =>
    each.$ref ? document.components.parameters[each.$ref.split('/').at(-1)].name === name : each.name === name,
  )
  return found.$ref ? document.components.parameters[found.$ref.split('/').at(-1)] : found
}
const without = (list: string[], ...words: string[]): string[] => list.filter((each) => !words.includes(each))
const dropParameter = (document: Json, path: string, name: string): void => {
  const found = operation(document, path)
  found.parameters = found.parameters.filter(
    (each: Json) => (each.$ref ? document.components.parameters[each.$ref.split('/').at(-1)].name : each.name) !== name,
  )
}

const keep = 'Keep it, with `deprecated: true`, `x-deprecated-on`, `x-sunset` and `x-replaced-by`'
const breaking: [what: string, mutate: (document: Json) => void, sentence: string][] = [
  [
    'a key of a body is removed',
    (d) => delete schema(d, 'LeadCreate').properties.lead_value,
    `LeadCreate.lead_value in requests was removed, which breaks clients of 1.0.0. ${keep}`,
  ],
  [
    'a key of a reply is removed',
    (d) => delete schema(d, 'Lead').properties.lost_reason,
    `Lead.lost_reason in replies was removed, which breaks clients of 1.0.0. ${keep}`,
  ],
  [
    'a key of a reply can be missing',
    (d) => Object.assign(schema(d, 'Lead'), { required: without(schema(d, 'Lead').required, 'closed_at') }),
    'Lead.closed_at in replies can be missing, which breaks clients of 1.0.0. Send it always',
  ],
  [
    'a key of a body becomes required',
    (d) => schema(d, 'LeadCreate').required.push('description'),
    'LeadCreate.description in requests is required, which breaks clients of 1.0.0. Leave it optional',
  ],
  [
    'an operation is removed',
    (d) => delete d.paths['/api/admin/leads/{id}'].delete,
    `deleteLead was removed, which breaks clients of 1.0.0. ${keep}`,
  ],
  [
    'an operationId changes',
    (d) => Object.assign(operation(d, '/leads'), { operationId: 'searchLeads' }),
    'listLeads is now called searchLeads, which breaks clients of 1.0.0. Keep the operationId',
  ],
  [
    'a permission changes',
    (d) => Object.assign(operation(d, '/leads'), { 'x-permission': 'quotes' }),
    'listLeads demands the permission quotes, not leads, which breaks clients of 1.0.0. Keep it: roles and tokens',
  ],
  [
    'an ability changes',
    (d) => Object.assign(operation(d, '/leads'), { 'x-ability': 'quotes:read' }),
    'listLeads demands the ability quotes:read, not leads:read, which breaks clients of 1.0.0. Keep it',
  ],
  [
    'an event is no longer fired',
    (d) => Object.assign(operation(d, '/leads', 'post'), { 'x-events': ['contacts.person.create'] }),
    'createLead no longer fires lead.create, which breaks clients of 1.0.0. Go on firing the event',
  ],
  [
    'an event is removed',
    (d) => delete d.webhooks['lead.create.after'],
    'event lead.create.after was removed, which breaks clients of 1.0.0. Go on sending the event.',
  ],
  [
    'a default changes',
    (d) => Object.assign(parameter(d, '/leads', 'per_page').schema, { default: 20 }),
    'PerPage ?per_page is 20 by default, not 10, which breaks clients of 1.0.0. Keep the default',
  ],
  [
    'a limit of a body becomes narrower',
    (d) => Object.assign(schema(d, 'LeadCreate').properties.title, { maxLength: 40 }),
    'LeadCreate.title in requests has maxLength 40, not 255, which breaks clients of 1.0.0. Go on taking what was valid',
  ],
  [
    'a value of a body is no longer taken',
    (d) => Object.assign(schema(d, 'LeadCreate').properties, { lead_value: { type: 'string' } }),
    'LeadCreate.lead_value in requests no longer takes number, which breaks clients of 1.0.0. Go on taking number',
  ],
  [
    'a value of an enum in requests is removed',
    (d) => schema(d, 'WebhookMethod').enum.shift(),
    'WebhookMethod in requests no longer takes "post", which breaks clients of 1.0.0. Go on taking it',
  ],
  [
    'a reply can be null',
    (d) => Object.assign(schema(d, 'Lead').properties.title, { type: ['string', 'null'] }),
    'Lead.title in replies can now be null, which breaks clients of 1.0.0. Send only string here',
  ],
  [
    'a filter is removed',
    (d) => dropParameter(d, '/leads', 'lead_value[gte]'),
    `listLeads ?lead_value[gte] was removed, which breaks clients of 1.0.0. ${keep}`,
  ],
  [
    'a sort key is removed',
    (d) => {
      const { items } = parameter(d, '/leads', 'sort').schema
      items.enum = without(items.enum, 'lead_value')
    },
    '?sort[] no longer takes "lead_value", which breaks clients of 1.0.0. Go on taking it',
  ],
  [
    'a parameter becomes required',
    (d) => Object.assign(parameter(d, '/leads', 'lead_value[gte]'), { required: true }),
    '?lead_value[gte] is required, which breaks clients of 1.0.0. Leave it optional',
  ],
  [
    'a problem code is removed',
    (d) => Object.assign(schema(d, 'ProblemCode'), { enum: without(schema(d, 'ProblemCode').enum, 'in_use') }),
    'ProblemCode in replies lost the code in_use, which breaks clients of 1.0.0. Go on sending the old code',
  ],
  [
    'the status of success changes',
    (d) => {
      const { responses } = operation(d, '/leads', 'post')
      responses['202'] = responses['201']
      delete responses['201']
    },
    'createLead no longer answers 201, which breaks clients of 1.0.0. Go on answering 201',
  ],
  [
    'a media type of a reply is removed',
    (d) => delete operation(d, '/leads/export').responses['200'].content['text/csv'],
    'no longer answers 200 as text/csv, which breaks clients of 1.0.0. Go on answering text/csv',
  ],
  [
    'the format of a reply changes',
    (d) => Object.assign(schema(d, 'Timestamp'), { format: 'date' }),
    'Timestamp in replies has the format "date", not "date-time", which breaks clients of 1.0.0. Leave `format`',
  ],
]

describe('a change that breaks clients', () => {
  it.each(breaking)('is stopped with a sentence when %s', (_what, mutate, sentence) => {
    const now = fresh()
    mutate(now)
    const found = gate(fresh(), now)
    expect(found.filter((each) => each.includes(sentence))).not.toEqual([])
  })

  it('passes with its line in breaking.txt, in a major version', () => {
    const now = fresh('2.0.0')
    schema(now, 'LeadCreate').properties.title.maxLength = 40
    const accepted = 'LeadCreate.title in requests has maxLength 40, not 255 — print shops cut longer titles\n'
    expect(gate(fresh(), now, { accepted })).toEqual([])
    expect(gate(fresh(), { ...now, info: { version: '1.1.0' } }, { accepted })).not.toEqual([])
    expect(gate(fresh(), fresh(), { accepted })).toEqual([expect.stringContaining('names no breaking change')])
  })
})

describe('a change that breaks nothing', () => {
  it.each<[string, (document: Json) => void]>([
    ['adds an optional key to a body', (d) => Object.assign(schema(d, 'LeadCreate').properties, { color: since })],
    ['adds a key to a reply', (d) => Object.assign(schema(d, 'Lead').properties, { color: since })],
    ['adds a value to an enum of replies', (d) => schema(d, 'ProblemCode').enum.push('too_green')],
    ['takes longer texts', (d) => Object.assign(schema(d, 'LeadCreate').properties.title, { maxLength: 999 })],
    ['requires less', (d) => Object.assign(schema(d, 'LeadCreate'), { required: [] })],
  ])('passes when it %s', (_what, mutate) => {
    const now = fresh('1.1.0')
    mutate(now)
    expect(gate(fresh(), now)).toEqual([])
  })

  it('may take in another branch of a union what a branch took', () => {
    const union = (...branches: Json[]): Json => {
      const document = fresh()
      schema(document, 'LeadCreate').properties.lost_reason = { oneOf: branches }
      return document
    }
    const [id, none] = [{ type: 'integer', minimum: 1 }, { type: 'null' }]
    const [both, named] = [
      { ...id, type: ['integer', 'null'] },
      { type: 'object', required: ['name'] },
    ]
    expect(gate(union(id, none), union(both, named))).toEqual([])
    expect(gate(union(id, none), union(id, named))).not.toEqual([])
    expect(gate(union(both, named), union(id, named))).not.toEqual([])
  })

  const since = { type: 'string', 'x-since': '1.1.0' }

  it('must say since when a new part exists', () => {
    const now = fresh('1.1.0')
    schema(now, 'Lead').properties.color = { type: 'string' }
    expect(gate(fresh(), now)).toEqual(['Lead.color in replies is new: write `x-since: 1.1.0`.'])
  })

  it.each([
    ['1.0.0', '1.0.0', '1.1.0'],
    ['1.9.3', '1.9.3', '1.10.0'],
    ['1.0.0', '2.0.0-rc.1', '2.0.0'],
    ['1.1.0-rc.1', '1.1.0-rc.1', '1.1.0'],
    ['1.0.0-rc.1', '1.0.0', undefined],
  ])('after %s, in %s: the new parts are of %s', (last, next, since) => {
    expect(versionOfNewParts(last, next)).toBe(since)
  })
})
