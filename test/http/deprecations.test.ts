// A renamed key, from its first release to its removal: old and new clients work side by side,
// calls that use the old name are told so, and the gate lets the old name go only after its sunset.
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { gateFindings } from '../../codegen/compat/gate.ts'
import { renderDocument } from '../../codegen/document.ts'
import { type ContractDocument, readContract } from '../../codegen/read.ts'
import { createReplyChecker } from '../../src/contract/output/reply-check.ts'
import { importing } from '../support/importing.ts'
import { useServer } from '../support/using.ts'

type Json = Record<string, any>

const root = fileURLToPath(new URL('../..', import.meta.url))
const written = readContract(root)
/** Returns the served contract of a version. */
function released(version: string, change: (document: Json) => void = () => undefined): Json {
  const document = structuredClone(written.document) as Json
  document.info.version = version
  change(document)
  return JSON.parse(renderDocument({ ...written, document: document as ContractDocument }))
}

const since = '2026-02-01'
const sunset = '2027-02-01'
const ending = { deprecated: true, 'x-deprecated-on': since, 'x-sunset': sunset }
const schemasOf = (document: Json): Json[] =>
  ['Lead', 'IncludedLead', 'LeadCreate', 'LeadUpdate'].map((name) => document.components.schemas[name])
const parametersOf = (document: Json): Json[] => [
  ...Object.values<Json>(document.components.parameters),
  ...Object.values<Json>(document.paths).flatMap((item) =>
    Object.values<Json>(item).flatMap(({ parameters }) => parameters ?? []),
  ),
]

/** Version 1.0.0 knows only `amount`. */
const original = released('1.0.0', (document) => {
  for (const { properties, required, examples = [] } of schemasOf(document)) {
    properties.amount = properties.lead_value
    delete properties.lead_value
    if (required?.includes('lead_value')) required.splice(required.indexOf('lead_value'), 1, 'amount')
    for (const each of examples)
      if ('lead_value' in each) {
        each.amount = each.lead_value
        delete each.lead_value
      }
  }
  for (const part of parametersOf(document)) {
    if (part.name) part.name = part.name.replace(/^lead_value/, 'amount')
    const items = part.name === 'sort' ? part.schema.items : undefined
    if (items?.enum) items.enum = items.enum.map((each: string) => each.replace('lead_value', 'amount'))
  }
})

/** Version 1.1.0 calls it `lead_value`, and keeps the old name. It also deprecates an operation. */
const renamed = released('1.1.0', (document) => {
  for (const { properties } of schemasOf(document)) {
    properties.lead_value['x-since'] = '1.1.0'
    properties.amount = { description: 'The old name.', ...ending, 'x-alias': 'lead_value' }
  }
  for (const part of parametersOf(document)) if (/^lead_value/.test(part.name)) part['x-since'] = '1.1.0'
  Object.assign(document.paths['/api/admin/leads/{id}/stage'].put, { ...ending, 'x-replaced-by': 'updateLead' })
})

/** The old name is gone. */
const removed = (version: string): Json => released(version)

const gate = (before: Json, now: Json, today: string): string[] =>
  gateFindings({ before: before as ContractDocument, now: now as ContractDocument, accepted: '', today })

describe('the gate', () => {
  it('lets a rename pass that keeps the old name, and stops one that does not', () => {
    expect(gate(original, renamed, '2026-02-01').join('\n')).toBe('')
    const abrupt = gate(original, removed('1.1.0'), '2026-02-01')
    expect(abrupt).toContainEqual(expect.stringContaining('Lead.amount in replies was removed'))
    expect(abrupt).toContainEqual(
      expect.stringContaining('an old name of the same value has `x-alias` in place of `x-replaced-by`'),
    )
  })

  it('lets the old name go after its sunset, in a major version', () => {
    const early = gate(renamed, removed('2.0.0'), '2026-12-01')
    expect(early).toContainEqual(expect.stringContaining(`It is promised until ${sunset}`))
    const minor = gate(renamed, removed('1.2.0'), '2027-03-01')
    expect(minor).toContainEqual(expect.stringContaining('raise the version from 1.2.0 to 2.0.0'))
    expect(gate(renamed, removed('2.0.0'), '2027-03-01')).toEqual([])
  })
})

describe('the release with both names', () => {
  const server = useServer({ contract: renamed })
  const checker = createReplyChecker(original)
  const old = { path: '/api/admin/leads/{id}', method: 'get' }
  const headersOf = ({ headers }: { headers: Json }): Json => ({
    deprecation: headers.deprecation,
    sunset: headers.sunset,
    link: headers.link,
  })
  const told = {
    deprecation: '@1769904000',
    sunset: 'Mon, 01 Feb 2027 00:00:00 GMT',
    link: '</api/admin/documentation/changes>; rel="deprecation"; type="text/html"',
  }

  it('takes and shows the old name, and says that it ends', async () => {
    const made = await server.admin.post('/leads', { title: 'Old', amount: 12.5 })
    expect([made.status, made.body.data.amount, made.body.data.lead_value]).toEqual([201, 12.5, 12.5])
    expect(headersOf(made)).toEqual(told)
    const shown = await server.admin.get(`/leads/${made.body.data.id}`)
    // A client of the old release is satisfied; the new name is a key that it ignores.
    const { lead_value: _new, ...rest } = shown.body.data
    expect(checker.findings(old, 200, 'application/json', { ...shown.body, data: rest })).toEqual([])
    expect(headersOf(shown).deprecation).toBeUndefined()
    const changed = await server.admin.put(`/leads/${made.body.data.id}`, { amount: 13 })
    expect([changed.status, changed.body.data.lead_value]).toEqual([200, 13])
  })

  it('says nothing to a client that uses the new name', async () => {
    const made = await server.admin.post('/leads', { title: 'New', lead_value: 12.5 })
    expect([made.status, made.headers.deprecation]).toEqual([201, undefined])
  })

  it('names errors as the request names its fields', async () => {
    const { status, body, headers } = await server.admin.post('/leads', { title: 'Old', amount: 'much' })
    expect([status, Object.keys(body.errors)]).toEqual([422, ['amount']])
    expect(headers.deprecation).toBe(told.deprecation)
    const both = await server.admin.post('/leads', { title: 'Old', amount: 1, lead_value: 2 })
    expect(both.body.errors).toEqual({ amount: ['Old name of `lead_value`: send one of both, or the same value.'] })
    const query = await server.admin.get('/leads?amount[gte]=much')
    expect(Object.keys(query.body.errors)).toEqual(['query.amount[gte]'])
  })

  it('filters, sorts and selects by the old name', async () => {
    for (const amount of [3, 1, 2]) await server.admin.post('/leads', { title: `L${amount}`, lead_value: amount })
    const listed = await server.admin.get('/leads?amount[gte]=2&sort=-amount&fields=amount')
    expect(listed.body.data).toEqual([{ amount: 3 }, { amount: 2 }])
    expect(listed.headers.deprecation).toBe(told.deprecation)
    expect(String(listed.headers.link)).toContain('rel="deprecation"')
  })

  it('exports both columns', async () => {
    await server.admin.post('/leads', { title: 'Old', lead_value: 7 })
    const { text } = await server.admin.get('/leads/export?format=csv')
    const [head = '', row = ''] = text.split('\r\n').map((line) => line.split(','))
    expect([row[head.indexOf('lead_value')], row[head.indexOf('amount')]]).toEqual(['7', '7'])
    const lines = await server.admin.get('/leads/export?format=ndjson')
    expect(JSON.parse(lines.text)).toMatchObject({ amount: 7, lead_value: 7 })
  })

  it('imports a file with the old name, and an export with both', async () => {
    const files = importing(server.admin)
    await files.run('leads', 'title,amount\nImported,7.5\n')
    await files.run('leads', 'title,amount,lead_value\nExported,9,9\n')
    const { body } = await server.admin.get('/leads?sort=lead_value')
    expect(body.data.map((each: Json) => [each.title, each.lead_value])).toEqual([
      ['Imported', 7.5],
      ['Exported', 9],
    ])
    const sample = await server.admin.get('/settings/data-transfer/import-samples/leads')
    expect(sample.text).not.toContain('amount')
  })

  it('sends both names in events', async () => {
    const made = await server.admin.post('/leads', { title: 'Old', lead_value: 7 })
    await server.admin.put(`/leads/${made.body.data.id}`, { lead_value: 8 })
    const { body } = await server.admin.get('/events?name=lead.update.after')
    expect(body.data[0]).toMatchObject({ before: { amount: 7 }, after: { amount: 8 } })
    expect(body.data[0].changed).toEqual(expect.arrayContaining(['lead_value', 'amount']))
  })

  it('runs workflows whose conditions and actions use the old name', async () => {
    const made = await server.admin.post('/settings/workflows', {
      name: 'Old',
      entity_type: 'leads',
      event: 'lead.create.after',
      conditions: [{ attribute: 'amount', operator: '>', value: 100 }],
      actions: [{ id: 'update_lead', attribute: 'amount', value: 99 }],
    })
    expect(made.status, made.text).toBe(201)
    const [big, small] = [
      await server.admin.post('/leads', { title: 'Big', lead_value: 101 }),
      await server.admin.post('/leads', { title: 'Small', lead_value: 50 }),
    ]
    await server.work()
    const values = [big, small].map(async ({ body }) => (await server.admin.get(`/leads/${body.data.id}`)).body.data)
    expect((await Promise.all(values)).map(({ lead_value }) => lead_value)).toEqual([99, 50])
  })

  it('fills in placeholders with both names', async () => {
    const lead = await server.admin.post('/leads', { title: 'Old', lead_value: 7 })
    const made = await server.admin.post('/settings/email-templates', {
      name: 'Old',
      subject: 'S',
      content: '{%leads.amount%} {%leads.lead_value%}',
    })
    expect(made.status).toBe(201)
    const seen = await server.admin.post(`/settings/email-templates/${made.body.data.id}/preview`, {
      entity_type: 'leads',
      entity_id: lead.body.data.id,
    })
    const [one, other] = String(seen.body.data.content)
      .replace(/<[^>]+>/g, '')
      .split(' ')
    expect([one, one]).toEqual([other, expect.stringContaining('7')])
  })

  it('says which operation replaces a deprecated one', async () => {
    const { body } = await server.admin.post('/leads', { title: 'Old', lead_value: 7 })
    const moved = await server.admin.put(`/leads/${body.data.id}/stage`, { lead_pipeline_stage_id: 2 })
    expect([moved.status, headersOf(moved)]).toEqual([
      200,
      { ...told, link: `${told.link}, </api/admin/leads/{id}>; rel="successor-version"` },
    ])
  })

  it('shows the last use by a token, once a day', async () => {
    const caller = await server.as(1)
    const id = Number(caller.token?.split('|')[0])
    await caller.post('/leads', { title: 'Old', amount: 1 })
    await caller.get('/leads?amount[gte]=2&sort=-amount')
    const uses = async (): Promise<Json[]> => (await server.admin.get(`/tokens/${id}`)).body.meta.deprecated_uses
    await expect.poll(uses).toEqual(
      ['createLead amount', 'listLeads ?amount[gte]', 'listLeads ?sort=-amount'].map((name) => ({
        name,
        sunset,
        last_used_at: '2026-03-01T09:30:00.000Z',
      })),
    )
    server.clock.set('2026-03-01T20:00:00.000Z')
    await caller.post('/leads', { title: 'Old', amount: 1 })
    server.clock.set('2026-03-02T09:30:00.000Z')
    await caller.post('/leads', { title: 'Old', amount: 1 })
    await expect.poll(async () => (await uses())[0]?.last_used_at).toBe('2026-03-02T09:30:00.000Z')
  })
})
