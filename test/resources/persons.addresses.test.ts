// E-mail addresses with letters of any script, wherever an address is: in requests, filters,
// imports and received e-mails.
import { describe, expect, it } from 'vitest'
import { form } from '../support/form.ts'
import { csvOf, importing } from '../support/importing.ts'
import { useSharedServer } from '../support/using.ts'

const server = useSharedServer({ config: { inboundSecret: 'secret' } })

const persons = '/contacts/persons'
const add = (value: string) => server.admin.post(persons, { name: value, emails: [{ value }] })
const found = async (email: string): Promise<string[]> =>
  (await server.admin.get(persons, { query: { email } })).body.data.map(({ name }: { name: string }) => name)

describe('an internationalized address', () => {
  it('is stored with its own letters, and found by each of its forms', async () => {
    const { status, body } = await add('anna@MÜLLER.de')
    expect([status, body.data.emails[0].value]).toEqual([201, 'anna@müller.de'])
    for (const form of ['anna@müller.de', 'Anna@Müller.DE', 'anna@xn--mller-kva.de', 'anna@mu\u0308ller.de'])
      expect.soft([form, await found(form)]).toEqual([form, ['anna@MÜLLER.de']])
    expect((await add('ANNA@xn--mller-kva.de')).status).toBe(409)
  })

  it('is found by a filter whose plus sign is not encoded', async () => {
    await add('ada+news@example.com')
    const { body } = await server.admin.get(`${persons}?email=Ada+News@example.com`)
    expect(body.data.map(({ name }: { name: string }) => name)).toEqual(['ada+news@example.com'])
  })

  it('may have letters of any script before the @', async () => {
    for (const address of ['jörg@example.com', '用户@例子.广告', 'δοκιμή@παράδειγμα.ελ', 'иван@почта.рф'])
      expect.soft([address, (await add(address)).status]).toEqual([address, 201])
    for (const address of [
      'a\u202e@example.com',
      '\u017fub@example.com',
      'ü ü@example.com',
      'a@mül_ler.de',
      'a@müller.de/x',
      'a@müller.de?x',
      'a@ä%2ede',
    ])
      expect.soft([address, (await add(address)).status]).toEqual([address, 422])
  })

  it('may have a slash between digits, unlike a telephone number', async () => {
    expect((await add('123456/0123456@example.com')).status).toBe(201)
  })

  it('is matched by imports', async () => {
    await add('karl@größe.example')
    const table = csvOf([
      ['name', 'emails'],
      ['Karl', 'karl@xn--gre-6ka8i.example'],
    ])
    expect((await importing(server.admin).run('persons', table)).summary).toMatchObject({ created: 0, updated: 1 })
  })

  it('of a received e-mail is that of its person', async () => {
    await add('rosa@blühend.example')
    const mail = [
      'From: Rosa <rosa@xn--blhend-4ya.example>',
      'To: sales@example.com',
      'Reply-To: jürgen@blühend.example',
      'Message-ID: <idn@example.com>',
      'Subject: Hi',
      '',
      'Hi',
    ]
    const { body, headers } = await form({ email: mail.join('\r\n') })
    await server.anonymous.post('//admin/mail/inbound-parse', body, {
      headers: { ...headers, 'x-inbound-secret': 'secret' },
    })
    await server.work()
    const [shown] = (await server.admin.get('/emails', { query: { message_id: 'idn@example.com' } })).body.data
    expect(shown).toMatchObject({ from: ['rosa@blühend.example'], reply_addresses: ['jürgen@blühend.example'] })
    expect(shown.person).toMatchObject({ email: 'rosa@blühend.example' })
  })
})
