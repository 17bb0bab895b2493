// Mails to customers: campaigns and their unsubscribe page in the language of the person, and the
// owner as the sender where the configuration allows it.
import PostalMime from 'postal-mime'
import { describe, expect, it } from 'vitest'
import { useSmtp } from '../support/outside.ts'
import { useServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const smtp = useSmtp()
const server = useServer(() => ({
  config: { smtpUrl: smtp.url, locale: 'en-GB', currency: 'EUR', mailFrom: 'crm@firm.example', mailFromName: 'Firm' },
}))

const person = async (changes: object) =>
  (await server.admin.post('/contacts/persons', { name: 'Erika', ...changes })).body.data
const at = (value: string) => ({ emails: [{ value, label: 'work' }] })

const rep = async (name: string, email: string) => {
  const user = await addUser(server, name)
  await server.store.db.updateTable('users').set({ email, email_key: email }).where('id', '=', user.id).execute()
  return user
}

/** Sends a campaign to all persons and returns the mails by address. */
async function campaign(content = '<p>{%persons.name%}</p>') {
  const template = await server.admin.post('/settings/email-templates', { name: 'T', subject: 's', content })
  const body = { name: 'C', subject: 'Hallo', is_active: true, email_template_id: template.body.data.id }
  const { data } = (await server.admin.post('/settings/marketing/campaigns', body)).body
  expect((await server.admin.post(`/settings/marketing/campaigns/${data.id}/run`)).status).toBe(202)
  await server.work()
  const mails = await Promise.all(
    smtp.received.map(async ({ to, from, raw }) => ({
      ...(await PostalMime.parse(raw)),
      address: to.join(),
      envelope: from,
    })),
  )
  return new Map(mails.map((mail) => [mail.address, mail]))
}
const allow = async () =>
  expect((await server.admin.put('/settings/configuration', { values: { 'email.from_owner': true } })).status).toBe(200)

describe('a campaign', () => {
  it('has the footer and the unsubscribe page in the language of each person', async () => {
    for (const [language, word] of [
      ['de', 'Abmelden'],
      ['fr-CA', 'Se désabonner'],
      ['es', 'Cancelar la suscripción'],
      [null, 'Unsubscribe'],
      ['xx', 'Unsubscribe'],
    ])
      await person({ language, ...at(`${word?.[0]}${language}@example.com`.toLowerCase()) })
    const mails = await campaign()
    const unsubscribeIn = async (address: string) => {
      const { html = '', text = '' } = mails.get(address) ?? {}
      const path = new URL(/http:\/\/localhost:8000(\/u\/[\w-]+)/.exec(text)?.[0] ?? 'none:').pathname
      const page = await server.inject({ url: path, headers: { accept: 'text/html' } })
      return { html, text, page: page.body }
    }
    for (const [address, word, lang] of [
      ['ade@example.com', 'Abmelden', 'de'],
      ['sfr-ca@example.com', 'Se désabonner', 'fr'],
      ['ces@example.com', 'Cancelar la suscripción', 'es'],
      ['unull@example.com', 'Unsubscribe', 'en'],
      ['uxx@example.com', 'Unsubscribe', 'en'],
    ] as const) {
      const { html, text, page } = await unsubscribeIn(address)
      for (const each of [html, text, page]) expect(each).toContain(word)
      expect(page).toContain(`<html lang="${lang}" dir="ltr">`)
      expect(page).toContain(`<bdi><strong>${address}</strong></bdi>`)
    }
  })

  it('comes from the owner, whose address counts only in the own domain', async () => {
    const near = await rep('Ana Rep', 'ana@firm.example')
    const far = await rep('عمر', 'omar@elsewhere.example')
    await person({ user_id: near.id, ...at('near@example.com') })
    await person({ user_id: far.id, ...at('far@example.com') })
    await person({ user_id: null, ...at('none@example.com') })
    await allow()
    const mails = await campaign()
    const facts = (address: string) => {
      const { from, replyTo, envelope } = mails.get(address) ?? {}
      return [from?.name, from?.address, replyTo?.[0]?.address, envelope]
    }
    expect(facts('near@example.com')).toEqual(['Ana Rep', 'ana@firm.example', 'crm@firm.example', 'crm@firm.example'])
    expect(facts('far@example.com')).toEqual(['عمر', 'crm@firm.example', 'crm@firm.example', 'crm@firm.example'])
    expect(facts('none@example.com')).toEqual(['Firm', 'crm@firm.example', undefined, 'crm@firm.example'])
  })

  it('comes from the installation by default', async () => {
    const owner = await rep('Ana Rep', 'ana@firm.example')
    await person({ user_id: owner.id, ...at('near@example.com') })
    expect((await campaign()).get('near@example.com')?.from).toMatchObject({
      name: 'Firm',
      address: 'crm@firm.example',
    })
  })
})

describe('an e-mail', () => {
  it('comes from its author, and replies go to the address of its thread', async () => {
    const owner = await rep('Ana Rep', 'ana@firm.example')
    const { id } = await person(at('erika@example.com'))
    await allow()
    const mail = { to: ['erika@example.com'], subject: 'Hallo', html: '<p>Hallo</p>', person_id: id }
    const { body } = await owner.post('/emails', mail)
    expect([body.data.from, body.data.name ?? body.data.from_name]).toEqual([['ana@firm.example'], 'Ana Rep'])
    await server.work()
    const { from, replyTo } = await PostalMime.parse(smtp.received[0]?.raw ?? '')
    expect([from?.address, smtp.received[0]?.from]).toEqual(['ana@firm.example', 'crm@firm.example'])
    expect(replyTo?.[0]?.address).toMatch(/^reply\+/)
  })
})

describe('an invitation', () => {
  it('has its labels, its date and its subject in the language of each participant', async () => {
    const [german, french] = [
      await person({ language: 'de', ...at('de@example.com') }),
      await person({ language: 'fr', ...at('fr@example.com') }),
    ]
    const activity = {
      type: 'meeting',
      title: 'Demo',
      comment: 'INTERN',
      location: 'Wien',
      notify: true,
      schedule_from: '2026-06-01T09:00:00Z',
      schedule_to: '2026-06-01T10:00:00Z',
      participants: { users: [], persons: [german.id, french.id] },
    }
    const { body, status } = await server.admin.post('/activities', activity)
    expect(status).toBe(201)
    await server.work()
    await server.admin.put(`/activities/${body.data.id}`, { location: 'Graz' })
    await server.work()
    const mails = await Promise.all(smtp.received.map(({ raw }) => PostalMime.parse(raw)))
    const to = (address: string) => mails.filter((mail) => mail.to?.[0]?.address === address)
    expect(to('de@example.com').map(({ subject }) => subject?.replaceAll(/[\u00a0\u202f]/g, ' '))).toEqual([
      'Demo, 1. Juni, 9:00',
      'Geändert: Demo, 1. Juni, 9:00',
    ])
    expect(to('fr@example.com')[1]?.subject).toMatch(/^Modifié: Demo, 1 juin/)
    for (const label of ['Wann', 'Ort', 'Organisator', 'Teilnehmer'])
      expect(to('de@example.com')[0]?.html).toContain(`>${label}:<`)
  })
})
