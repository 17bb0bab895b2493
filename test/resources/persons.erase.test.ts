// Export and erasure of persons: after an erasure, no trace of the person is left anywhere.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { unzipSync } from 'fflate'
import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import type { TestServer } from '../support/app.ts'
import { isPostgres, openAt } from '../support/engine.ts'
import { file, form } from '../support/form.ts'
import { csvOf, importing } from '../support/importing.ts'
import { newName } from '../support/names.ts'
import { useNewServers } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const people = '/contacts/persons'
const inboundSecret = 'open: sesame'
let folder = ''
let log: string[] = []
const server = useNewServers(() => {
  folder = join(tmpdir(), newName('accord-erase'))
  log = []
  return {
    config: { dataDir: folder, inboundSecret },
    lines: { write: (line: string) => void log.push(line) },
    ...(!isPostgres && { open: openAt(`${folder}.db`) }),
  }
})

/** Texts that occur nowhere else. Words of a name are separate canaries. */
const canary = (number: number): string => `zq${String(number).padStart(2, '0')}canary`
const all = Array.from({ length: 36 }, (_, index) => canary(index))

async function sent(path: string, body: object, headers: Record<string, string> = {}) {
  const reply = await server.admin.post(path, body, { headers })
  expect(reply.status, reply.text + log.filter((line) => line.includes('"level":50')).join('')).toBeLessThan(300)
  return reply.body.data
}

async function upload(name: string, text: string): Promise<number> {
  const { body, headers } = await form({ file: file(name, text) })
  return (await server.admin.post('/files', body, { headers })).body.data.id
}

const mailFrom = async (from: string, to: string, subject: string, text: string) => {
  const { body, headers } = await form({
    email: [
      `Message-ID: <${newName('mail')}@example.com>`,
      `From: ${from}`,
      `To: ${to}`,
      `Subject: ${subject}`,
      '',
      text,
    ].join('\r\n'),
  })
  return server.anonymous.post('//admin/mail/inbound-parse', body, {
    headers: { ...headers, 'x-inbound-secret': inboundSecret },
  })
}

/** Plants a canary wherever data of a person can get. */
async function plant() {
  const attribute = { entity_type: 'persons', type: 'text' }
  await sent('/settings/attributes', { ...attribute, code: 'hobby', name: 'Hobby' })
  await sent('/settings/attributes', { ...attribute, type: 'file', code: 'passport', name: 'Passport' })
  const key = { 'idempotency-key': 'create-the-person' }
  const body = {
    name: `${canary(0)} ${canary(1)}`,
    emails: [{ value: `${canary(2)}@example.com` }, { value: `${canary(3)}@example.com` }],
    contact_numbers: [{ value: '+44 20 7946 0958' }],
    job_title: canary(4),
    external_ids: { hubspot: canary(5) },
    custom_attributes: { hobby: canary(6), passport: await upload(`${canary(7)}.txt`, canary(8)) },
  }
  const person = await sent(people, body, key)
  await server.admin.put(`${people}/${person.id}`, { job_title: canary(9), custom_attributes: { hobby: canary(10) } })
  const lead = await sent('/leads', {
    title: canary(11),
    description: canary(12),
    lead_value: 10,
    person_id: person.id,
  })
  await server.admin.put(`/leads/${lead.id}`, { title: canary(13) })
  const address = { address: canary(14), country: 'GB', city: canary(15), postcode: '1' }
  const draft = await sent('/quotes', {
    ...{ subject: canary(16), description: canary(17), person_id: person.id, billing_address: address },
    ...{ expiry_date: '2026-12-01', items: [{ name: 'Seat', quantity: 1, price: 5 }] },
  })
  const note = await sent('/activities', { type: 'note', comment: canary(18), person_id: person.id })
  const gone = await sent('/activities', { type: 'note', comment: canary(19), person_id: person.id })
  await server.admin.delete(`/activities/${gone.id}`)
  const leadNote = await sent('/activities', { type: 'note', comment: canary(20), lead_id: lead.id })
  await mailFrom(`${canary(21)} <${canary(2)}@example.com>`, 'crm@localhost', canary(22), canary(23))
  const fields = { subject: canary(24), html: canary(25), to: [`${canary(3)}@example.com`], is_draft: true }
  const mail = await sent('/emails', fields)
  const shared = await sent('/emails', {
    ...{ subject: 'For both', html: `Dear ${canary(0)} ${canary(1)}`, is_draft: true },
    to: [`${canary(2)}@example.com`, 'other@example.org'],
  })
  const rows = [
    ['name', 'emails', 'job_title'],
    [`${canary(0)} ${canary(1)}`, `${canary(2)}@example.com`, canary(26)],
    [canary(27), `${canary(2)}@example.com`, 'x'.repeat(300)],
  ]
  const run = await importing(server.admin).run('persons', csvOf(rows), { allowed_errors: 10 })
  const deletedLead = await sent('/leads', { title: canary(28), lead_value: 1, person_id: person.id })
  await server.admin.delete(`/leads/${deletedLead.id}`)
  const suppressions = '/settings/marketing/suppressions'
  await sent(suppressions, { address: `${canary(3)}@example.com` })
  await server.work()
  return { person, body, key, lead, deletedLead, draft, note, leadNote, mail, shared, run }
}

/** Returns the canaries in the database, by table. */
async function inDatabase({ store }: TestServer): Promise<string[]> {
  const found = new Set<string>()
  const { columns } = await store.dialect.relations(store.db as never)
  for (const [table] of columns)
    for (const row of (await sql`select * from ${sql.table(table)}`.execute(store.db)).rows) {
      const text = JSON.stringify(row)
      for (const each of all) if (text.includes(each)) found.add(`${table} ${each}`)
    }
  return [...found].sort()
}

/** Returns the canaries in the bytes of files. */
function onDisk(): string[] {
  const names = existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: 'utf8' }) : []
  const paths = [...names.map((name) => join(folder, name)), `${folder}.db`, `${folder}.db-wal`]
  const found = new Set<string>()
  for (const path of paths) {
    let bytes: Buffer
    try {
      bytes = readFileSync(path)
    } catch {
      continue
    }
    for (const each of all) if (bytes.includes(each)) found.add(`${path} ${each}`)
  }
  return [...found]
}

const inLog = (): string[] => all.filter((each) => log.some((line) => line.includes(each)))

describe('erasePerson', { timeout: 60_000 }, () => {
  it('leaves no trace in the database, its file, the files and the log, and keeps records of others', async () => {
    const { person, body, key, lead, deletedLead, draft, note, leadNote, mail, shared, run } = await plant()
    const before = await inDatabase(server)
    expect(new Set(before.map((each) => each.split(' ')[1])).size).toBeGreaterThan(26)
    const dry = await server.admin.post(`${people}/${person.id}/erase`, {}, { headers: { 'accord-dry-run': 'true' } })
    expect(dry.status, log.filter((line) => line.includes('"level":50')).join('')).toBe(200)
    expect(await inDatabase(server)).toEqual(before)

    const erased = await server.admin.post(`${people}/${person.id}/erase`, {})
    expect(erased.status, erased.text).toBe(201)
    expect(erased.body.data.removed).toEqual(dry.body.data.removed)
    await server.work()
    expect(await inDatabase(server)).toEqual([])
    expect(onDisk()).toEqual([])
    expect(inLog()).toEqual([])

    const receipt = await server.admin.get(`${people}/erasures/${erased.body.data.id}`)
    expect(
      receipt.body.data,
      JSON.stringify(await server.store.db.selectFrom('jobs').select(['kind', 'last_error', 'state']).execute()),
    ).toEqual({ ...erased.body.data, purged_at: expect.any(String) })
    expect(receipt.body.data.suppressed).toBe(3)
    const list = await server.admin.get(`${people}/erasures?person_id=${receipt.body.data.person_id}`)
    expect(list.body.data).toEqual([receipt.body.data])
    expect(
      (await server.admin.get(`${people}/erasures?person_id=${receipt.body.data.person_id + 1}`)).body.data,
    ).toEqual([])
    // Others keep their records.
    const gone = [note, leadNote].map(({ id }) => `/activities/${id}`).concat(`/emails/${mail.id}`)
    for (const path of gone) expect((await server.admin.get(path)).status, path).toBe(404)
    expect((await server.admin.get(`/emails/${shared.id}`)).body.data).toMatchObject({
      to: ['[erased]', 'other@example.org'],
      subject: 'For both',
    })
    expect((await server.admin.get(`/leads/${lead.id}`)).body.data).toMatchObject({
      ...{ title: 'Erased', description: null, lead_value: 10, person_id: null },
    })
    expect((await server.admin.get(`/quotes/${draft.id}`)).body.data).toMatchObject({
      ...{ subject: 'Erased', person: { id: person.id, name: 'Erased person', email: null } },
    })
    // It stays away.
    const again = await server.admin.post(people, body, { headers: key })
    expect([again.status, again.body.code]).toEqual([409, 'state_conflict'])
    expect((await server.admin.post(`${people}/${person.id}/restore`)).status).toBe(409)
    expect((await server.admin.post(`/leads/${deletedLead.id}/restore`)).status).toBe(404)
    const undone = await server.admin.post(`/settings/data-transfer/imports/${run.id}/undo`)
    expect(undone.status, undone.text).toBeLessThan(300)
    await server.work()
    expect(await inDatabase(server)).toEqual([])
    for (const path of ['/events', `${people}/${person.id}/history`, `/leads/${lead.id}/history`, '/emails'])
      expect((await server.admin.get(path)).status, path).toBe(200)
  })
})

const ada = { name: 'Ada Lovelace', emails: [{ value: 'ada@example.com' }], external_ids: { hubspot: '17' } }

describe('the suppression of an erasure', { timeout: 60_000 }, () => {
  it('refuses imports, forms, received e-mails and administrators, until it is lifted', async () => {
    const { id } = await sent(people, ada)
    const { id: erasure } = await sent(`${people}/${id}/erase`, {})
    const byHand = await server.admin.post(people, { name: 'Ada', emails: [{ value: 'ADA@example.com' }] })
    const sentence = `It belongs to a person who was erased. To allow it again, lift the suppression of erasure ${erasure}.`
    expect([byHand.status, byHand.body.errors]).toEqual([422, { 'emails.0.value': [sentence] }])
    const upsert = await server.admin.put(`${people}/external/hubspot/17`, { name: 'Ada' })
    expect([upsert.status, upsert.body.errors]).toEqual([422, { 'external_ids.hubspot': [sentence] }])

    const rows = [
      ['name', 'emails'],
      ['Bob', 'bob@example.com'],
      ['Ada', 'ada@example.com'],
    ]
    const { record, post } = importing(server.admin)
    const table = await record('persons', csvOf(rows), { allowed_errors: 10 })
    await post(table.id, 'validate')
    const report = await server.admin.get(`/settings/data-transfer/imports/${table.id}`)
    expect(JSON.stringify(report.body.data.errors)).toContain(sentence)

    const letter = await mailFrom('Ada <ada@example.com>', 'crm@localhost', 'Hello', 'Back again')
    expect([letter.status, letter.body.code]).toEqual([403, 'event_vetoed'])
    const copied = await mailFrom('Eve <eve@example.org>', 'crm@localhost, ada@example.com', 'Hello', 'Both')
    expect(copied.status, copied.text).toBe(200)
    expect((await server.admin.get('/emails')).body.data).toMatchObject([{ to: ['crm@localhost'] }])

    const fields = await server.admin.get('/settings/attributes', {
      query: { entity_type: 'persons', per_page: '100' },
    })
    const attributes = fields.body.data
      .filter(({ code }: { code: string }) => ['name', 'emails'].includes(code))
      .map((each: { id: number }) => ({ attribute_id: each.id }))
    const webForm = await sent('/settings/web-forms', {
      ...{ title: 'Contact', submit_button_label: 'Send', submit_success_action: 'message' },
      ...{ submit_success_content: 'Thanks', create_lead: false, attributes },
    })
    const visit = await server.anonymous.post(`//web-forms/forms/${webForm.form_id}`, {
      persons: { name: 'Ada', emails: [{ value: 'ada@example.com' }] },
    })
    expect([visit.status, JSON.stringify(visit.body?.errors ?? visit.text)]).toEqual([
      422,
      expect.stringContaining('This address cannot be stored.'),
    ])

    expect((await server.admin.delete(`${people}/erasures/${erasure}/suppression`)).status).toBe(200)
    expect((await server.admin.get(`${people}/erasures/${erasure}`)).body.data).toMatchObject({
      ...{ suppressed: 0, lifted_at: expect.any(String) },
    })
    await sent(people, ada)
    const { data: newest } = (await server.admin.get(`${people}/erasures?per_page=2`)).body
    expect(newest[0].id).toBe(erasure)
    expect(newest[1]?.id ?? 0).toBeLessThan(erasure)
  })

  it('leaves out an address that another person or a user has', async () => {
    const { id } = await sent(people, { name: 'Boss', emails: [{ value: 'admin@example.com' }] })
    expect(await sent(`${people}/${id}/erase`, {})).toMatchObject({ suppressed: 0 })
    expect((await server.admin.get('/account')).body.data.email).toBe('admin@example.com')
  })
})

describe('an erasure among other records', { timeout: 60_000 }, () => {
  it('keeps an activity with another participant, and a namesake', async () => {
    const { id } = await sent(people, ada)
    const namesake = await sent(people, { name: 'Ada Lovelace', emails: [{ value: 'other@example.com' }] })
    const both = { type: 'note', comment: 'Ada Lovelace (ada@example.com) meets other@example.com' }
    const note = await sent('/activities', { ...both, person_ids: [id, namesake.id] })
    const erased = await sent(`${people}/${id}/erase`, {})
    expect((await server.admin.get(`/activities/${note.id}`)).body.data).toMatchObject({
      ...{ comment: '[erased] ([erased]) meets other@example.com', person_ids: [namesake.id] },
    })
    expect((await server.admin.get(`${people}/${namesake.id}`)).body.data).toMatchObject({ name: 'Ada Lovelace' })
    expect((await server.admin.get(`${people}/${id}`)).status).toBe(404)
    expect(erased.kept).toContainEqual(expect.objectContaining({ place: 'activities', count: 1 }))
  })

  it('erases a deleted person, once, and hides it from users with a limited view', async () => {
    const { id } = await sent(people, ada)
    const other = await sent(people, { name: 'Bob', emails: [{ value: 'bob@example.com' }] })
    const limited = await addUser(server, 'Limited', { view: 'individual', permissions: ['contacts.persons.erase'] })
    expect((await limited.post(`${people}/${id}/erase`, {})).status).toBe(404)
    expect((await limited.post(`${people}/${id}/export`)).status).toBe(404)
    await server.admin.delete(`${people}/${id}`)
    expect((await limited.post(`${people}/${id}/erase`, {})).status).toBe(404)
    await sent(`${people}/${id}/erase`, {})
    expect((await server.admin.post(`${people}/${id}/erase`, {})).status).toBe(404)
    expect((await server.admin.post(`${people}/${id}/restore`)).status).toBe(404)
    expect((await server.admin.get(`${people}/${other.id}`)).status).toBe(200)
    const feed = await server.admin.get('/events', { query: { entity_type: 'persons' } })
    expect(JSON.stringify(feed.body)).not.toContain('Lovelace')
    expect(JSON.stringify(server.seen.filter(({ name }) => name.includes('erase')))).not.toContain('Lovelace')
  })

  it.each(['keep', 'pseudonymize'])('sent quotes: %s', async (sent_quotes) => {
    const { id } = await sent(people, ada)
    const address = { address: 'Elm Street', country: 'GB', city: 'London', postcode: '1' }
    const quote = await sent('/quotes', {
      ...{ subject: 'Offer', person_id: id, billing_address: address, expiry_date: '2026-12-01' },
      ...{ items: [{ name: 'Seat', quantity: 1, price: 5 }] },
    })
    await server.admin.put(`/quotes/${quote.id}`, { status: 'sent' })
    const receipt = await sent(`${people}/${id}/erase`, { sent_quotes })
    const { body } = await server.admin.get(`/quotes/${quote.id}`)
    const isKept = sent_quotes === 'keep'
    expect(body.data).toMatchObject({
      person: { id, name: 'Erased person', email: null },
      customer: { person: isKept ? 'Ada Lovelace' : 'Erased person', organization: null },
      grand_total: 5,
    })
    expect(body.data.billing_address.address).toBe(isKept ? 'Elm Street' : '-')
    expect(receipt.kept.map(({ place }: { place: string }) => place)).toContain('quotes')
    expect((await server.admin.get(`/quotes/${quote.id}/print`)).status).toBe(200)
    // The record is empty, and a second erasure changes nothing more.
    expect((await server.admin.get(`${people}/${id}`)).body.data).toMatchObject({ name: 'Erased person', emails: [] })
    await sent(`${people}/${id}/erase`, {})
    await server.admin.delete(`/quotes/${quote.id}`)
    expect((await server.admin.delete(`${people}/${id}`)).status).toBe(200)
  })
})

describe('an erasure of rows that no one wrote by hand', { timeout: 60_000 }, () => {
  it('empties ledgers, jobs, deliveries, runs, refused rows of imports, and texts of other records', async () => {
    const { db } = server.store
    const at = { created_at: '2026-03-01T09:00:00.000Z', updated_at: '2026-03-01T09:00:00.000Z' }
    const address = `${canary(0)}.o'hara@example.com`
    const name = `${canary(1)} O'Hara "${canary(2)}" Ümit`
    const { id } = await sent(people, {
      name,
      emails: [{ value: address }],
      contact_numbers: [{ value: '+49 30 9018200' }],
    })
    const lookup = { entity_type: 'organizations', type: 'lookup', lookup_type: 'persons', code: 'ceo', name: 'CEO' }
    await sent('/settings/attributes', lookup)
    await sent('/settings/attributes', { entity_type: 'organizations', type: 'textarea', code: 'memo', name: 'Memo' })
    const organization = await sent('/contacts/organizations', {
      ...{ name: 'Analytical Ltd', custom_attributes: { ceo: id, memo: `${name}\n<${address}>\n+49 30 9018200` } },
    })
    await server.admin.put(`${people}/${id}`, { organization_id: organization.id })
    const campaign = await sent('/settings/marketing/campaigns', {
      ...{ name: 'News', subject: 'News', email_template_id: 1 },
      ...{ audience: { type: 'filter', filter: { email: [address] } } },
    })
    const send = { campaign_id: campaign.id, occurrence: 'once', address, person_id: id, message_id: canary(3) }
    const queued = { ...send, state: 'queued' as const, run_at: '2027-01-01T00:00:00.000Z', error: canary(4), ...at }
    await db.insertInto('campaign_sends').values(queued).execute()
    await db
      .insertInto('jobs')
      .values([
        { kind: 'test.note', payload: JSON.stringify({ to: address }), state: 'buried', run_at: at.created_at, ...at },
        {
          kind: 'test.note',
          payload: '{}',
          last_error: `550 <${address}>`,
          state: 'buried',
          run_at: at.created_at,
          ...at,
        },
      ])
      .execute()
    const webhook = await sent('/settings/webhooks', {
      ...{
        name: 'Hook',
        entity_type: 'persons',
        method: 'post',
        url: 'https://example.com/',
        events: ['contacts.person.update.after'],
      },
    })
    const attempts = [{ at: at.created_at, status: 500, duration_ms: 1, error: null, response_excerpt: canary(5) }]
    const delivery = {
      webhook_id: webhook.id,
      dedupe_key: 'x',
      message_id: 'm',
      event_id: 1,
      event: 'contacts.person.update.after',
    }
    await db
      .insertInto('webhook_deliveries')
      .values({
        ...delivery,
        entity_type: 'persons',
        entity_id: id,
        state: 'failed',
        attempts: JSON.stringify(attempts),
        ...at,
      })
      .execute()
    const rows = [
      ['name', 'emails', 'job_title'],
      ['', address, canary(6)],
      ['Someone', 'someone@example.com', 'x'],
    ]
    const { record, post } = importing(server.admin)
    const table = await record('persons', csvOf(rows), { allowed_errors: 10 })
    await post(table.id, 'validate')
    await server.work()
    const undelivered = await sent('/emails', { subject: canary(7), html: canary(8), to: [address], is_draft: true })
    await server.admin.delete(`/emails/${undelivered.id}`)
    await server.admin.delete(`/emails/${undelivered.id}`)
    const planted = [...(await inDatabase(server)), ...onDisk()]
    expect(new Set(planted.map((each) => each.split(' ')[1])).size).toBe(9)

    await sent(`${people}/${id}/erase`, {})
    await server.work()
    expect(await inDatabase(server)).toEqual([])
    expect([onDisk(), inLog()]).toEqual([[], []])
    const shown = await server.admin.get(`/contacts/organizations/${organization.id}`)
    expect(shown.body.data.custom_attributes).toEqual({ ceo: null, memo: '[erased]\n<[erased]>\n[erased]' })
    const sends = await server.admin.get(`/settings/marketing/campaigns/${campaign.id}/sends`)
    expect(sends.body.data).toMatchObject([{ state: 'suppressed', person: null }])
    // Nothing that the server still does with these rows fails.
    for (const path of [
      ...[`/settings/webhooks/${webhook.id}/deliveries`, `/settings/data-transfer/imports/${table.id}`, '/jobs'],
      ...[`/settings/marketing/campaigns/${campaign.id}`, `/settings/data-transfer/imports/${table.id}/error-report`],
    ])
      expect([path, (await server.admin.get(path)).status < 500]).toEqual([path, true])
    for (const what of ['validate', 'start'])
      expect((await server.admin.post(`/settings/data-transfer/imports/${table.id}/${what}`)).status).toBeLessThan(500)
    await server.work()
    expect(log.filter((line) => line.includes('"level":50'))).toEqual([])
  })
})

describe('exportPersonData', { timeout: 60_000 }, () => {
  it('has everything about the person, as JSON and as a page', async () => {
    const { person } = await plant()
    const reply = await server.inject({
      method: 'POST',
      url: `/api/admin${people}/${person.id}/export`,
      headers: { authorization: `Bearer ${server.admin.token}` },
    })
    expect([reply.statusCode, reply.headers['content-type']]).toEqual([200, 'application/zip'])
    const entries = unzipSync(new Uint8Array(reply.rawPayload))
    const texts = Object.entries(entries).map(([name, bytes]) => `${name} ${Buffer.from(bytes).toString()}`)
    const missing = all.slice(0, 26).filter((each) => !texts.some((text) => text.includes(each)))
    // The archive of a deleted record has canaries 19 and 28, and the former values are in events.
    expect(missing).toEqual([])
    expect(Object.keys(entries)).toContain('persons.json')
    expect(Buffer.from(entries['index.html'] ?? []).toString()).toContain('<h2>E-mails</h2>')
    expect(Object.keys(entries).filter((name) => name.startsWith('files/'))).toHaveLength(2)
  })
})
