// Texts that PostgreSQL cannot store: U+0000 and unpaired surrogates. Requests with them are
// refused, e-mails and imports remove them, and no request gets a 5xx.
import { describe, expect, it } from 'vitest'
import { file, form } from '../support/form.ts'
import { given } from '../support/given.ts'
import { importing } from '../support/importing.ts'
import { useServer } from '../support/using.ts'
import { workbook } from '../support/workbook.ts'

const server = useServer()

const unstorable = ['a\u0000b', 'a\ud800b', 'a\udc00b'] as const

describe('a request', () => {
  it.each(unstorable)('with %j in its body is refused, as text and as a key', async (text) => {
    const lead = await given(server.admin).lead()
    for (const body of [{ name: text }, { name: 'Fair', [text]: 1 }, { name: { deep: [text] } }])
      expect((await server.admin.post('/sources', body)).status).toBe(422)
    expect((await server.admin.put(`/leads/${lead.id}`, { description: text })).status).toBe(422)
    expect((await server.admin.put(`/leads/${lead.id}`, { custom_attributes: { [text]: text } })).status).toBe(422)
  })

  it('with U+0000 in its path, query, form or header is refused', async () => {
    for (const path of ['/sources?q=a%00b', '/sources?name=%00', '/sources?%00=1', '/leads?title[contains]=%00'])
      expect([path, (await server.admin.get(path)).status]).toEqual([path, 422])
    expect((await server.admin.get('/sources/%00')).status).toBeLessThan(500)
    expect((await server.admin.get('/sources?q=%ed%a0%80')).status).toBeLessThan(500)
    const { body, headers } = await form({ file: file('a\u0000b.txt', 'text'), note: 'a\u0000b' })
    expect((await server.admin.post('/files', body, { headers })).status).toBe(422)
    for (const name of ['idempotency-key', 'user-agent', 'x-request-id', 'if-match'])
      expect((await server.admin.post('/sources', { name }, { headers: { [name]: 'a\u0000b' } })).status).toBeLessThan(
        500,
      )
  })

  it('to sign in with such an address or password is refused', async () => {
    for (const text of unstorable)
      for (const credentials of [
        { email: `${text}@example.com`, password: 'x' },
        { email: 'admin@example.com', password: text },
      ])
        expect((await server.anonymous.post('/login', { ...credentials, device_name: 'test' })).status).toBe(422)
  })

  it('gives a file a name without them', async () => {
    const { body, headers } = await form({ file: file('a\u0000b.txt', 'text') })
    const { status, body: reply } = await server.admin.post('/files', body, { headers })
    expect([status, reply.data.name]).toEqual([201, 'ab.txt'])
  })
})

describe('an e-mail', () => {
  const raw = [
    'From: "A\u0000da" <ada@example.org>',
    'To: "C\u0000RM" <crm@example.com>',
    'Cc: =?utf-8?Q?x=00y?= <cc@example.org>',
    'Reply-To: r\u0000@example.org',
    'Subject: =?utf-8?Q?a=00b?= c\u0000d',
    'Message-ID: <a\u0000b@example.org>',
    'In-Reply-To: <c\u0000d@example.org>',
    'References: <e\u0000f@example.org>',
    'X-Mailer: m\u0000m',
    'Content-Type: multipart/mixed; boundary=x',
    '',
    '--x',
    'Content-Type: text/html; charset=utf-8',
    '',
    '<p>a\u0000b &#0; &#xD800;</p>',
    '--x',
    'Content-Type: text/plain; name="n\u0000.txt"',
    'Content-ID: <i\u0000d>',
    'Content-Disposition: attachment; filename="n\u0000.txt"',
    '',
    'a\u0000b',
    '--x--',
    '',
  ].join('\r\n')

  async function stored(parts: Parameters<typeof form>[0]) {
    const { body, headers } = await form(parts)
    const reply = await server.anonymous.post('//admin/mail/inbound-parse', body, { headers })
    expect([reply.status, reply.text]).toEqual([200, expect.any(String)])
    const { id } = await server.store.db
      .selectFrom('emails')
      .select('id')
      .orderBy('id', 'desc')
      .executeTakeFirstOrThrow()
    const shown = await server.admin.get(`/emails/${id}`)
    expect([shown.status, shown.text]).toEqual([200, expect.not.stringMatching(/\0|\\u0000|\\ud8/i)])
    expect((await server.admin.get('/emails?q=a')).status).toBeLessThan(500)
  }

  it('is stored without them, from its raw bytes', () => stored({ email: file('m.eml', raw) }))

  it('is stored without them, from the fields of a form', () =>
    stored({
      headers: 'From: ada@example.org\nX-Mailer: m\u0000m\nMessage-ID: <z\u0000@example.org>',
      from: 'A\u0000 <ada@example.org>',
      to: 'crm@example.com',
      subject: 'a\u0000b',
      text: 'a\u0000b',
      html: '<p>a\u0000b</p>',
      envelope: JSON.stringify({ to: ['c\u0000@example.com'], from: 'a\ud800@example.org' }),
      charsets: JSON.stringify({ text: 'utf-8\u0000' }),
    }))
})

describe('an import', () => {
  const names = async () =>
    (await server.store.db.selectFrom('organizations').select('name').execute()).map(({ name }) => name)

  it('takes no table with U+0000, which is not a text', async () => {
    for (const table of ['name\nA\u0000cme\nFine\n', 'na\u0000me,name\nx,Fine\n']) {
      const { id } = await importing(server.admin).record('organizations', table)
      const path = `/settings/data-transfer/imports/${id}`
      expect((await server.admin.post(`${path}/validate`)).status).toBe(202)
      const { body } = await server.admin.get(path)
      expect(JSON.stringify(body.data.errors)).toContain('The file is not text in utf-8.')
      expect((await server.admin.post(`${path}/start`)).status).toBe(409)
    }
    expect(await names()).toEqual([])
  })

  it('of a workbook that writes them as escapes ends with a state', async () => {
    const { record } = importing(server.admin)
    const table = workbook([['name'], ['A_x0000_cme'], ['A_xD800_cme'], ['Fine']])
    const { id } = await record('organizations', table)
    const path = `/settings/data-transfer/imports/${id}`
    expect((await server.admin.post(`${path}/validate`)).status).toBe(202)
    expect((await server.admin.post(`${path}/start`)).status).toBe(202)
    expect((await server.admin.get(path)).status).toBe(200)
    expect(await names()).toContain('Fine')
    expect((await names()).filter((name) => /\0|\p{Surrogate}/u.test(name ?? ''))).toEqual([])
  }, 240_000)
})

it('a text of a listener or a program that reaches the database is stored', async () => {
  const now = '2026-03-01T09:30:00.000Z'
  const { id } = await server.store.db
    .insertInto('lead_sources')
    .values({ name: 'a\u0000b', name_key: 'a\u0000b', created_at: now, updated_at: now } as never)
    .returning('id')
    .executeTakeFirstOrThrow()
  expect(
    (await server.store.db.selectFrom('lead_sources').select('name').where('id', '=', id).executeTakeFirst())?.name,
  ).toMatch(/^a(\0|\ufffd)b$/)
})
