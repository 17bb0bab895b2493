// Imports of tables as other programs write them, with the settings that the analysis suggests.
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { startServer, type TestServer } from '../support/app.ts'
import { file, form } from '../support/form.ts'
import { importing, path } from '../support/importing.ts'

let server: TestServer
beforeAll(async () => {
  server = await startServer()
  await server.admin.post('/settings/attributes', {
    code: 'workplace',
    name: 'Workplace',
    type: 'multiselect',
    entity_type: 'persons',
    options: ['REMOTE', 'HYBRID', 'ON_SITE'].map((name) => ({ name })),
  })
  await server.keep()
})
beforeEach(() => server.rewind())
afterAll(() => server.close())

const table = (name: string): Buffer => readFileSync(new URL(`../support/tables/${name}`, import.meta.url))

/** Imports a file with the suggested settings. */
async function take(type: string, name: string, bytes: string | Uint8Array = table(name), changes: object = {}) {
  const about = { type, action: 'append', validation_strategy: 'skip-errors', process_in_queue: 'false' }
  const sent = await form({ ...about, file: file(name, bytes) })
  const created = await server.admin.post(path, sent.body, { headers: sent.headers })
  if (created.status !== 201) throw new Error(created.text)
  const { id } = created.body.data
  const analysis = (await server.admin.get(`${path}/${id}/analysis`)).body.data
  const put = await server.admin.put(`${path}/${id}`, { ...analysis.settings, ...changes })
  if (put.status !== 200) throw new Error(put.text)
  const validated = await importing(server.admin).post(id, 'validate')
  const done = validated.state === 'validated' ? await importing(server.admin).post(id, 'start') : validated
  return { analysis, done, validated }
}

const lists: Record<string, string> = {
  persons: '/contacts/persons',
  organizations: '/contacts/organizations',
  products: '/products',
  leads: '/leads',
}
const stored = async (type: string) => (await server.admin.get(`${lists[type]}?sort=id`)).body.data
const values = (points: any[]) => points.map(({ value }) => value)
const person = ({ name, emails, contact_numbers, job_title, organization, tags }: any) => ({
  name,
  emails: values(emails),
  contact_numbers: values(contact_numbers),
  job_title,
  organization: organization?.name ?? null,
  tags: tags.map((tag: any) => tag.name),
})
const none = { emails: [], contact_numbers: [], job_title: null, organization: null, tags: [] }

describe('contacts of other programs', () => {
  it('google: names in parts, labels, " ::: " and groups; a contact without a name is refused', async () => {
    const { analysis, done } = await take('persons', 'google-contacts.csv')
    expect(analysis.layout).toBe('google-contacts')
    const [grace, ann, ...others] = await stored('persons')
    expect(person(grace)).toEqual({
      name: 'Grace B. Keller',
      emails: ['grace@keller.example', 'grace.k@home.example'],
      contact_numbers: ['+1 202 555 0101', '+1 202 555 0102', '+1 202 555 0103'],
      job_title: 'Admiral',
      organization: 'Keller GmbH',
      tags: ['Clients'],
    })
    expect(grace.contact_numbers.map(({ label }: any) => label)).toEqual(['mobile', 'mobile', 'work'])
    expect(person(ann)).toEqual({ ...none, name: 'Ann Otter', contact_numbers: ['0151 2345678'] })
    expect(others).toEqual([])
    expect(done.errors).toMatchObject([{ row: 4, column: 'First Name', code: 'validation_failed' }])
    expect(done.warnings).toContain('The column Notes is left out; it has 1 value.')
    expect(analysis.warnings).toContain('The column Birthday is left out; it has 1 value.')
    expect(done.warnings.join()).not.toContain('Phone 1 - Label')
  })

  it('outlook: the title is a part of the name, and 0/0/00 is empty', async () => {
    const { analysis, done } = await take('persons', 'outlook-contacts.csv')
    expect([analysis.layout, done.errors]).toEqual(['outlook-contacts', []])
    expect((await stored('persons')).map(person)).toEqual([
      {
        name: 'Dr. Otto Lang',
        emails: ['otto@lang.example', 'otto@home.example'],
        contact_numbers: ['+49 30 1234567', '+49 151 7654321'],
        job_title: 'CTO',
        organization: 'Lang GmbH',
        tags: [],
      },
    ])
  })

  it('hubspot: the owner by address; a filled column that is left out is named', async () => {
    const { analysis, done } = await take('persons', 'hubspot-contacts.csv')
    expect(analysis.layout).toBe('hubspot-contacts')
    const [hugo] = await stored('persons')
    expect(hugo).toMatchObject({ name: 'Hugo Spohr', organization: { name: 'Spohr Inc' } })
    expect([values(hugo.emails), values(hugo.contact_numbers)]).toEqual([['hugo@spohr.example'], ['+1 202 555 0110']])
    expect(hugo.user.email).toBe('admin@example.com')
    expect(done.warnings).toEqual(expect.arrayContaining(['The column Lead Status is left out; it has 1 value.']))
  })

  it('salesforce: an unknown owner is a warning, and the notes below a report are left out', async () => {
    const { analysis, done, validated } = await take('persons', 'salesforce-report.csv')
    expect(analysis.layout).toBe('salesforce-contacts')
    expect(done).toMatchObject({ state: 'completed', summary: { created: 1, skipped: 0 } })
    expect(validated.errors).toEqual([
      {
        row: 2,
        column: 'Account Owner',
        code: 'cell_omitted',
        message: expect.stringContaining('No user has the name Mary Owner.'),
      },
    ])
    const [sally] = await stored('persons')
    expect(sally).toMatchObject({ name: 'Sally Forst', job_title: 'VP', organization: { name: 'Forst Corp' } })
    expect(sally.user.email).toBe('admin@example.com')
    expect(done.warnings).toContain('The last 4 rows below the table are left out.')
  })
})

describe('deals of other programs', () => {
  it('hubspot: a won deal is won, with the person of its contact', async () => {
    await take('persons', 'hubspot-contacts.csv')
    const { analysis, done } = await take('leads', 'hubspot-deals.csv')
    expect(analysis.layout).toBe('hubspot-deals')
    expect(done.summary).toMatchObject({ created: 1 })
    const [lead] = await stored('leads')
    expect(lead).toMatchObject({ title: 'Forty seats', lead_value: 1200, status: 2, stage: { name: 'Won' } })
    expect([lead.person.email, lead.closed_at.slice(0, 16)]).toEqual(['hugo@spohr.example', '2026-02-03T10:00'])
    expect(done.changes).toContainEqual({ column: 'Deal Stage', from: 'Closed Won', to: 'Won', count: 1 })
    expect(done.errors).toMatchObject([{ column: 'Pipeline', code: 'cell_omitted' }])
    expect(await stored('persons')).toHaveLength(1)
  })

  it('pipedrive: the status decides, and the missing person comes with its organization', async () => {
    const { analysis } = await take('leads', 'pipedrive-deals.csv')
    expect(analysis).toMatchObject({ layout: 'pipedrive-deals', settings: { unknown_references: 'create' } })
    const [lead] = await stored('leads')
    expect(lead).toMatchObject({
      title: 'Big order',
      lead_value: 1200,
      status: 3,
      lost_reason: 'too dear',
      person: { name: 'Dee Person', email: 'dee@x.example' },
      organization: { name: 'Acme' },
    })
  })
})

describe('companies and products of other programs', () => {
  it('salesforce: address columns with a word in front', async () => {
    const { analysis, done } = await take('organizations', 'salesforce-accounts.csv')
    expect(analysis.layout).toBe('salesforce-accounts')
    expect((await stored('organizations'))[0]).toMatchObject({
      name: 'Sierra Ltd',
      address: { address: '1 Main St', city: 'Reno', state: 'NV', postcode: '89501', country: 'US' },
    })
    expect(done.changes).toEqual([{ column: 'Billing Country', from: 'United States', to: 'US', count: 1 }])
    expect(done.warnings).toEqual(['The column Phone is left out; it has 1 value.'])
  })

  it('woocommerce: a flag is not a quantity, and an empty column sets nothing', async () => {
    const { analysis } = await take('products', 'woocommerce-products.csv')
    expect(analysis.layout).toBe('woocommerce-products')
    const products = await stored('products')
    expect(products).toMatchObject([{ sku: 'WC-1', name: 'Mug', price: 9.9, quantity: 12 }])
  })
})

describe('cells of spreadsheets', () => {
  it('reads a file with a line sep=;', async () => {
    await take('persons', 'excel-sep-line.csv')
    expect((await stored('persons')).map(person)).toMatchObject([{ name: 'Sep Arator', emails: ['sep@x.example'] }])
  })

  it('reads guarded numbers, and leaves out cells whose value is lost', async () => {
    const { done } = await take('persons', 'excel-artefacts.csv')
    expect((await stored('persons')).map((each: any) => [each.name, values(each.contact_numbers)])).toEqual([
      ['Sci Number', []],
      ['Guard One', ['01512345678']],
      ['Guard Two', ['01512345678']],
      ['Hash Marks', []],
    ])
    expect(done.errors.map(({ row, column, code }: any) => [row, column, code])).toEqual([
      [2, 'contact_numbers', 'cell_omitted'],
      [5, 'name', 'validation_failed'],
      [6, 'contact_numbers', 'cell_omitted'],
    ])
    expect(done.errors[0].message).toContain('spreadsheet')
  })

  it('reads several values in a cell', async () => {
    await take('persons', 'lists-in-cells.csv')
    expect((await stored('persons')).map(person)).toMatchObject([
      {
        emails: ['la@x.example', 'lb@x.example'],
        contact_numbers: ['+1 202 555 0001', '+1 202 555 0002'],
        tags: ['new', 'vip'],
      },
      {
        emails: ['lc@x.example', 'ld@x.example'],
        contact_numbers: ['+49 30 1234567', '+49 30 1234568'],
        tags: ['new', 'vip'],
      },
      { contact_numbers: ['+1 202 555 0001 ext. 12'] },
      { emails: ['lf@x.example'], contact_numbers: ['1-800-FLOWERS'] },
    ])
    await take('persons', 'multi-select.csv')
    const chosen = (await stored('persons')).slice(-2).map((each: any) => each.custom_attributes.workplace)
    expect(chosen.map((options: any[]) => options.length)).toEqual([2, 2])
  })

  it('reads names of countries and words of flags', async () => {
    const { done } = await take('organizations', 'flags-and-countries.csv')
    const organizations = await stored('organizations')
    expect(organizations.map(({ address }: any) => address.country)).toEqual(['DE', 'US', 'DE'])
    expect(done.changes).toContainEqual({ column: 'address.country', from: 'Germany', to: 'DE', count: 1 })
    await take('persons', 'flags.csv')
    expect((await stored('persons')).map(({ subscribed }: any) => subscribed)).toEqual([true, true, false])
  })

  it('reads amounts with currencies, and dates of several forms', async () => {
    const { done } = await take('leads', 'amounts-and-dates.csv')
    expect((await stored('leads')).map((each: any) => [each.title, each.lead_value, each.expected_close_date])).toEqual(
      [
        ['Am One', 1200.5, '2026-12-31'],
        ['Am Two', 1234.5, '2026-02-01'],
        ['Am Three', 1234567.5, '2026-02-01'],
      ],
    )
    expect(done.changes).toContainEqual({ column: 'lead_value', from: 'CHF', to: 'USD', count: 1 })
  })

  it('reads the encodings of Macs, and a file with two encodings', async () => {
    const mac = await take('persons', 'mac-roman.csv')
    expect(mac.analysis.settings.encoding).toBe('macintosh')
    expect(mac.analysis.warnings[0]).toContain('macintosh is a guess')
    const mixed = await take('persons', 'mixed-encodings.csv')
    expect(mixed.done.warnings.join()).toContain('two encodings')
    expect(mixed.analysis.warnings.join()).toContain('two encodings')
    expect((await stored('persons')).map(({ name }: any) => name)).toEqual(['Jürgen', 'Jürgen Müller', 'Jörg'])
  })
})
