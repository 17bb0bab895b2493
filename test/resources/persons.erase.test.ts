// Export and erasure of persons: after an erasure, no trace of the person is left anywhere.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import type { TestServer } from '../support/app.ts'
import { isPostgres, openAt } from '../support/engine.ts'
import { file, form } from '../support/form.ts'
import { csvOf, importing } from '../support/importing.ts'
import { newName } from '../support/names.ts'
import { useNewServers } from '../support/using.ts'

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
  expect(reply.status, reply.text).toBeLessThan(300)
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
    expect(dry.status, dry.text).toBe(200)
    expect(await inDatabase(server)).toEqual(before)

    const erased = await server.admin.post(`${people}/${person.id}/erase`, {})
    expect(erased.status, erased.text).toBe(200)
    expect(erased.body.data.removed).toEqual(dry.body.data.removed)
    await server.work()
    expect(await inDatabase(server)).toEqual([])
    expect(onDisk()).toEqual([])
    expect(inLog()).toEqual([])

    const receipt = await server.admin.get(`${people}/erasures/${erased.body.data.id}`)
    expect(receipt.body.data).toEqual({ ...erased.body.data, purged_at: expect.any(String) })
    expect(receipt.body.data.suppressed).toBe(3)
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
