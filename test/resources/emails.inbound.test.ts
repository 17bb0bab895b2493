// Receiving mail: a mail is stored once, in the right thread, with the right person,
// sanitized, and only with the secret. test/mail tests parsing, and test/flows/mail.test.ts the
// mailbox.
import { PassThrough, type Readable } from 'node:stream'
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Schema } from '../../src/contract/types.ts'
import { createEncryption, inboundSecretOf } from '../../src/kernel/auth/encryption.ts'
import { formsOfBytes, reserve } from '../../src/kernel/files/body-memory-budget.ts'
import { Veto } from '../../src/kernel/write/events.ts'
import { answerAddress } from '../../src/resources/emails/parents.ts'
import { type Caller, type Reply, startServer, type TestServer } from '../support/app.ts'
import { isPostgres } from '../support/engine.ts'
import { file, form } from '../support/form.ts'
import { given } from '../support/given.ts'
import { someone } from '../support/people.ts'
import { pixel } from '../support/pictures.ts'
import { until } from '../support/until.ts'
import { useServer } from '../support/using.ts'

type Email = Schema<'Email'>

const path = '//admin/mail/inbound-parse'
const inboundSecret = 'open: sesame'
const proven = { 'x-inbound-secret': inboundSecret }

let refused: string | null = null
let failing = false
let surfacing: Error | null = null
const server = useServer({
  config: { inboundSecret },
  extensions: [
    (events) =>
      events.on('email.create.before', ({ input }) => {
        if (refused !== null && (input as { subject: string }).subject === refused) throw new Veto('Not this one.')
        if (failing) throw new TypeError('A defect.')
      }),
    (events) =>
      events.on('email.update.before', () => {
        if (surfacing) throw surfacing
      }),
  ],
})

const lines = (...text: string[]): string => text.join('\r\n')

let count = 0
interface Letter {
  id?: string
  from?: string
  to?: string
  subject?: string
  more?: string[]
  body?: string
}
/** Returns a MIME message. */
const raw = ({
  id = `${++count}@example.com`,
  from = 'Ada Lovelace <ada@example.com>',
  to = 'crm@localhost',
  subject = 'Hello',
  more = [],
  body = 'Good morning',
}: Letter = {}): string =>
  lines(
    `Message-ID: <${id}>`,
    `From: ${from}`,
    `To: ${to}`,
    `Subject: ${subject}`,
    'Date: Sun, 1 Mar 2026 09:00:00 +0000',
    ...more,
    '',
    body,
  )

async function post(
  fields: Record<string, string | File>,
  caller: Caller = server.anonymous,
  query = '',
): Promise<Reply> {
  const { body, headers } = await form(fields)
  return caller.post(path + query, body, { headers: { ...headers, ...proven } })
}
const shown = async (id: number): Promise<Email> => (await server.admin.get(`/emails/${id}`)).body.data

/** Posts a mail, expects 200 and discards the events. */
async function received(letter: Letter = {}): Promise<Email> {
  const { status, text, body } = await post({ email: raw(letter) })
  if (status !== 200) throw new Error(text)
  server.events()
  return shown(body.data.id)
}

async function written(changes: Record<string, unknown> = {}): Promise<Email> {
  const { body } = await server.admin.post('/emails', {
    subject: 'Offer',
    html: '<p>Hi</p>',
    to: ['ada@example.com'],
    ...changes,
  })
  server.events()
  return body.data
}

const created = ['email.create.before', 'email.create.after']

describe('receiveEmail', () => {
  it('stores a raw message as it was written, with its bytes, as the system, and fires one pair of events', async () => {
    const text = raw({
      id: 'one@example.com',
      to: 'crm@localhost, "B, C" <b@example.com>',
      more: ['Cc: c@example.com', 'Sender: d@example.com'],
    })
    const { status, body } = await post({ email: text })
    expect(status).toBe(200)
    const id = body.data?.id
    expect(body).toEqual({
      data: { id: expect.any(Number), duplicate: false, parent_id: null, person_id: null },
      message: 'E-mail received.',
    })
    expect(server.seen.map(({ actor, origin }) => `${actor.type} ${origin}`)).toEqual([
      'system inbound_mail',
      'system inbound_mail',
    ])
    expect(server.events()).toEqual(created)
    expect(await shown(id)).toMatchObject({
      subject: 'Hello',
      html: '<p>Good morning</p>',
      text: 'Good morning',
      from: ['ada@example.com'],
      from_name: 'Ada Lovelace',
      to: ['crm@localhost', 'b@example.com'],
      cc: ['c@example.com'],
      sender: ['d@example.com'],
      source: 'email',
      sender_type: 'person',
      status: 'received',
      folders: ['inbox'],
      is_read: false,
      is_automatic: false,
      message_id: 'one@example.com',
      references: ['one@example.com'],
      thread_id: id,
      user_id: null,
      sent_at: '2026-03-01T09:00:00.000Z',
      attachments: [],
      version: 1,
    })
    const bytes = await server.admin.get(`/emails/${id}/raw`)
    expect([bytes.status, bytes.headers['content-type'], bytes.text]).toEqual([200, 'message/rfc822', text])
    const part = await server.admin.get(`/emails/${id}/raw`, { headers: { range: 'bytes=0-9' } })
    expect([part.status, part.text]).toEqual([206, 'Message-ID'])
  })

  it('stores a message that was taken apart the same, in any encoding, and without its bytes', async () => {
    const data = new FormData()
    const { body: bytes, headers } = await form({
      from: 'Ada <ada@example.com>',
      to: 'crm@localhost',
      subject: 'Gr?sse',
      text: 'a\u001b\fb',
      html: '<p>x</p>',
      charsets: '{"subject":"iso-8859-1"}',
      headers: lines('Message-ID: <two@example.com>', 'Subject: x'),
      SPF: 'pass',
      surprise: 'passed over',
      attachments: '2',
      attachment1: file('a.txt', 'first'),
      attachment2: file('empty.txt', ''),
    })
    data.delete('')
    const sent = Buffer.from(bytes.toString('latin1').replace('Gr?sse', 'Gr\u00fcsse'), 'latin1')
    const { status, body } = await server.anonymous.post(`${path}?secret=${encodeURIComponent(inboundSecret)}`, sent, {
      headers,
    })
    expect([status, body?.errors]).toEqual([200, undefined])
    const mail = await shown(body.data.id)
    expect(mail).toMatchObject({ subject: 'Grüsse', message_id: 'two@example.com', html: '<p>x</p>' })
    expect(mail.attachments.map(({ name, size }) => [name, size])).toEqual([
      ['a.txt', 5],
      ['empty.txt', 0],
    ])
    expect((await server.admin.get(`/emails/${mail.id}/raw`)).status).toBe(404)
  })

  it('takes a form without parts, where the message is text of any encoding', async () => {
    const text = Buffer.from(
      raw({
        id: 'three@example.com',
        more: ['Content-Type: text/plain; charset=iso-8859-1', 'Content-Transfer-Encoding: 8bit'],
        body: 'Gr\u00fcsse 100%',
      }),
      'latin1',
    )
    const body = `email=${[...text].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')}&surprise=1&&=x&bad=%zz`
    const reply = await server.anonymous.post(path, body, {
      headers: { ...proven, 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' },
    })
    expect([reply.status, reply.body.data.duplicate]).toEqual([200, false])
    expect((await shown(reply.body.data.id)).text).toBe('Grüsse 100%')
    const parsed = new URLSearchParams({ from: 'a@example.com', subject: 'S', text: 'T' })
    expect(
      (
        await server.anonymous.post(path, parsed.toString(), {
          headers: { 'content-type': 'application/x-www-form-urlencoded' },
        })
      ).status,
    ).toBe(200)
  })

  it('answers duplicate to a message it knows and changes nothing, also to several at once and to one of its own', async () => {
    const own = await written()
    const text = raw({ id: 'same@example.com' })
    const replies = await Promise.all(Array.from({ length: 5 }, () => post({ email: text })))
    expect(replies.map(({ status, body }) => `${status} ${body.data.duplicate}`).sort()).toEqual([
      '200 false',
      ...Array(4).fill('200 true'),
    ])
    expect(new Set(replies.map(({ body }) => body.data.id)).size).toBe(1)
    const heard = server.events()
    // On PostgreSQL several transactions may fire `.before`, of which one commits.
    expect(isPostgres ? [...new Set(heard)] : heard).toEqual(created)
    const back = await post({
      email: raw({ id: own.message_id, subject: '[list] Offer', more: ['List-Id: x', 'Precedence: list'] }),
    })
    expect(back.body).toMatchObject({
      data: { id: own.id, duplicate: true },
      message: 'E-mail was here before.'.replace('E-mail', 'The e-mail'),
    })
    expect([await shown(own.id), server.events()]).toEqual([own, []])
    const files = await server.store.db.selectFrom('files').select('id').execute()
    expect(files).toHaveLength(1)
  })

  it('gives a message without Message-ID one of its own, the same each time', async () => {
    const text = lines('From: a@example.com', 'Subject: x', '', 'y')
    const [first, second] = [await post({ email: text }), await post({ email: text })]
    expect([first.body.data.duplicate, second.body.data]).toEqual([false, { ...first.body.data, duplicate: true }])
    expect((await shown(first.body.data.id)).message_id).toMatch(/^[0-9a-f]{64}@inbound$/)
    const whole = (file: string): string =>
      lines(
        'From: a@example.com',
        'Content-Type: multipart/mixed; boundary=b',
        '',
        '--b',
        'Content-Disposition: attachment; filename=a.txt',
        '',
        file,
        '--b--',
      )
    const apart = (text: string) => ({ from: 'a@example.com', subject: 'f', attachment1: file('a.txt', text) })
    for (const mail of [(text: string) => ({ email: whole(text) }), apart]) {
      const replies = [await post(mail('one')), await post(mail('two')), await post(mail('one'))]
      expect(replies.map(({ body }) => body.data.duplicate)).toEqual([false, false, true])
    }
  })

  it.each([
    ['no mail', { email: 'x' }],
    ['an empty file', { email: file('m.eml', '') }],
    ['a form without a mail', { surprise: 'x' }],
  ])('answers 400 to %s, and keeps nothing', async (_what, fields) => {
    const { status, body } = await post(fields as Record<string, string>)
    expect([status, body.code, server.events()]).toEqual([400, 'malformed_request', []])
    expect(await server.store.db.selectFrom('files').select('id').execute()).toEqual([])
  })

  it('takes 30 MiB, and answers 413 to more', async () => {
    const line = `${'x'.repeat(998)}\r\n`
    const mail = (size: number): string => raw({ body: line.repeat(Math.ceil(size / 1000)) }).slice(0, size)
    const most = 30 * 1024 * 1024
    expect((await post({ email: file('m.eml', mail(most)) })).status).toBe(200)
    for (const sent of [mail(most + 1), file('m.eml', mail(most + 1))]) {
      const { status, body } = await post({ email: sent })
      expect([status, body.code]).toEqual([413, 'payload_too_large'])
    }
    const plain = await server.anonymous.post(path, `email=${'x'.repeat(32 * 1024 * 1024)}`, {
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    })
    expect(plain.status).toBe(413)
  })

  it('is refused by a listener with 403, and nothing of it stays', async () => {
    refused = 'Spam'
    const { status, body } = await post({ email: raw({ subject: 'Spam' }) })
    refused = null
    expect([status, body.code, body.detail]).toEqual([403, 'event_vetoed', 'Not this one.'])
    expect(server.events()).toEqual(['email.create.before'])
    for (const table of ['emails', 'files'] as const)
      expect(await server.store.db.selectFrom(table).select('id').execute()).toEqual([])
  })

  it('asks for it again when a listener merely fails, and keeps nothing', async () => {
    const text = raw()
    failing = true
    const { status, body } = await post({ email: text })
    failing = false
    expect([status, body.code]).toEqual([500, 'internal_error'])
    expect(await server.store.db.selectFrom('files').select('id').execute()).toEqual([])
    expect((await post({ email: text })).body.data.duplicate).toBe(false)
  })

  it('limits the bytes received at once, in total and more strictly per address', async () => {
    const { services } = server.app
    const from = async (remoteAddress: string) => {
      const { body, headers } = await form({ email: raw() })
      return server.inject({ method: 'POST', url: '/admin/mail/inbound-parse', remoteAddress, headers, payload: body })
    }
    const loans = [1, 2, 3].map((last) => reserve(services, `192.0.2.${last}`, formsOfBytes))
    expect(loans[0]?.grow(32 * 1024 * 1024)).toBe(true)
    const refused = await from('192.0.2.1')
    expect([refused.statusCode, refused.json().code, refused.headers['retry-after']]).toEqual([503, 'unavailable', '1'])
    expect((await from('192.0.2.4')).statusCode).toBe(200)
    for (const loan of loans.slice(1)) expect(loan.grow(32 * 1024 * 1024)).toBe(true)
    expect((await from('192.0.2.4')).statusCode).toBe(503)
    expect(await server.store.db.selectFrom('emails').select('id').execute()).toHaveLength(1)
    for (const loan of loans) loan.release()
    expect((await from('192.0.2.1')).statusCode).toBe(200)
    expect((await post({ email: file('m.eml', raw({ body: 'x '.repeat(1024 * 1024) })) })).status).toBe(200)
    expect(formsOfBytes.lent.get(services)?.size).toBe(0)
  })

  it('admits other callers while one caller announces a large body and sends it slowly', async () => {
    const { body, headers } = await form({ email: raw() })
    const call = (remoteAddress: string, payload: Readable | Buffer, length: number) =>
      server.inject({
        method: 'POST',
        url: '/admin/mail/inbound-parse',
        remoteAddress,
        headers: { ...headers, 'content-length': String(length) },
        payload,
      })
    const slow = [1, 2, 3, 4].map(() => {
      const payload = new PassThrough()
      const reply = call('192.0.2.1', payload, 31 * 1024 * 1024)
      payload.write(body.subarray(0, 10))
      return { end: () => payload.end(body.subarray(10)), reply }
    })
    // Waits until all four requests are being read.
    await until(() => formsOfBytes.lent.get(server.app.services)?.get('of 192.0.2.1') === 40)
    expect((await call('192.0.2.2', body, body.length)).statusCode).toBe(200)
    expect((await call('192.0.2.1', body, body.length)).statusCode).toBe(200)
    for (const { end } of slow) end()
    const statuses = (await Promise.all(slow.map(({ reply }) => reply))).map(({ statusCode }) => statusCode)
    expect(statuses).toEqual([200, 200, 200, 200])
  })

  it('refuses a dry run and an If-Match', async () => {
    const send = async (more: Record<string, string>) => {
      const { body, headers } = await form({ email: raw() })
      return server.anonymous.post(path, body, { headers: { ...headers, ...proven, ...more } })
    }
    expect([(await send({ 'accord-dry-run': 'true' })).status, server.events()]).toEqual([422, []])
    const reply = await send({ 'if-match': '"9"' })
    expect([reply.status, reply.body.data.duplicate, server.events()]).toEqual([200, false, created])
  })
})

describe('threads', () => {
  it('joins what it answers by In-Reply-To, then References from the last, and never by its subject', async () => {
    const [one, two] = [await received({ id: 'r1@x' }), await received({ id: 'r2@x' })]
    const direct = await received({ subject: 'Re: Hello', more: ['In-Reply-To: <r1@x>', 'References: <r2@x>'] })
    const last = await received({ more: ['References: <r1@x> <r2@x> <unknown@x>'] })
    const subject = await received({ subject: 'Re: Hello' })
    expect([direct, last, subject].map(({ parent_id, thread_id }) => [parent_id, thread_id])).toEqual([
      [one.id, one.id],
      [two.id, two.id],
      [null, subject.id],
    ])
    expect(last.references.slice(0, 3)).toEqual(['r1@x', 'r2@x', 'unknown@x'])
  })

  it('joins the thread of the address it was sent to, whatever its headers say, in any case, from the envelope too', async () => {
    const [offer, other] = [await written(), await received({ id: 'other@x' })]
    const address = answerAddress(server.app.services, offer.thread_id)
    expect(address).toMatch(/^reply\+[0-9a-z]+-[0-9a-f]{32}@localhost$/)
    const first = await received({ to: address.toUpperCase(), more: ['In-Reply-To: <other@x>'] })
    expect([first.parent_id, first.thread_id]).toEqual([offer.id, offer.id])
    const second = await received({ id: 'second@x', to: address, more: [`References: <${first.message_id}>`] })
    expect([second.parent_id, second.thread_id]).toEqual([first.id, offer.id])
    const { body } = await post({
      from: 'a@example.com',
      to: 'someone@else.example',
      subject: 'x',
      envelope: JSON.stringify({ to: [address] }),
    })
    expect(body.data.parent_id).toBe(offer.id)
    expect((await shown(other.id)).version).toBe(1)
  })

  it('takes no token that it did not give out', async () => {
    const [offer, other] = [await written(), await written()]
    const [right, foreign] = [offer, other].map(({ thread_id }) => answerAddress(server.app.services, thread_id)) as [
      string,
      string,
    ]
    const token = right.split('-')[1]
    for (const forged of [
      right.replace(/-[0-9a-f]/, (each) => (each === '-0' ? '-1' : '-0')),
      `${foreign.split('-')[0]}-${token}`,
      `reply+zzzzzzzzzz-${token}`,
      `reply+-${token}`,
      'reply+1-@localhost',
    ]) {
      const mail = await received({ to: forged })
      expect([mail.parent_id, mail.thread_id], forged).toEqual([null, mail.id])
    }
  })

  it('finds the thread of a mail that answers the same, when what both answer never came here', async () => {
    const first = await received({ more: ['In-Reply-To: <elsewhere@x>'] })
    const second = await received({ more: ['References: <elsewhere@x>'] })
    expect([second.parent_id, second.thread_id]).toEqual([first.id, first.id])
  })

  it('puts the first mail of the thread into the inbox again, unread, with an event of its own', async () => {
    const offer = await written()
    await server.admin.put(`/emails/${offer.id}`, { folders: ['trash'] })
    server.events()
    const { body } = await post({ email: raw({ more: [`In-Reply-To: <${offer.message_id}>`] }) })
    expect(server.events()).toEqual([
      'email.create.before',
      'email.update.before',
      'email.create.after',
      'email.update.after',
    ])
    expect(await shown(offer.id)).toMatchObject({ folders: ['inbox', 'outbox'], is_read: false })
    const answer = await shown(body.data.id)
    await post({ email: raw({ more: [`In-Reply-To: <${answer.message_id}>`] }) })
    expect(server.events()).toEqual(created)
  })

  it.each([new Veto('Let it rest.'), new TypeError('A defect.')])(
    'is as it was when a listener will not have it shown anew, and the answer is kept: %s',
    async (cause) => {
      const offer = await written()
      await server.admin.put(`/emails/${offer.id}`, { folders: ['trash'] })
      const before = await shown(offer.id)
      server.events()
      surfacing = cause
      const { status, body } = await post({ email: raw({ more: [`In-Reply-To: <${offer.message_id}>`] }) })
      surfacing = null
      expect([status, body.data?.parent_id]).toEqual([200, offer.id])
      expect(server.events()).toEqual(['email.create.before', 'email.update.before', 'email.create.after'])
      expect(await shown(offer.id)).toEqual(before)
    },
  )

  it('is about the person and lead of the thread, else about the person with the address of the sender', async () => {
    const make = given(server.admin)
    const ada = await make.person({ emails: [{ value: 'Ada@Example.com', label: 'work' }] })
    const bo = await make.person({ emails: [{ value: 'bo@example.com', label: 'work' }] })
    const lead = await make.lead()
    expect((await received()).person_id).toBe(ada.id)
    expect((await received({ from: 'xada@example.com' })).person_id).toBeNull()
    const offer = await written({ person_id: ada.id, lead_id: lead.id })
    const answer = await received({ from: 'bo@example.com', more: [`In-Reply-To: <${offer.message_id}>`] })
    expect([answer.person_id, answer.lead_id]).toEqual([ada.id, lead.id])
    const bare = await written()
    const other = await received({ from: 'BO@example.com', more: [`In-Reply-To: <${bare.message_id}>`] })
    expect([other.person_id, other.lead_id]).toEqual([bo.id, null])
    const entries = (await server.admin.get(`/leads/${lead.id}/activities`)).body.data as {
      source: string
      id: number
    }[]
    expect(entries.filter(({ source }) => source === 'email').map(({ id }) => id)).toEqual([answer.id, offer.id])
  })

  it('is about the only open lead of the person, and about none of several or of closed ones', async () => {
    const make = given(server.admin)
    const person = await make.person({ emails: [{ value: 'ada@example.com' }] })
    expect((await received()).lead?.id).toBe(undefined)
    const lead = await make.lead({ person_id: person.id })
    const won = await make.lead({ person_id: person.id })
    await server.admin.put(`/leads/${won.id}/stage`, { lead_pipeline_stage_id: 5 })
    expect((await received()).lead?.id).toBe(lead.id)
    await make.lead({ person_id: person.id })
    expect((await received()).lead?.id).toBe(undefined)
  })

  it('is about the person of the Reply-To address when a program sends it', async () => {
    const make = given(server.admin)
    const ada = await make.person({ emails: [{ value: 'ada@example.com', label: 'work' }] })
    const bo = await make.person({ emails: [{ value: 'bo@example.com', label: 'work' }] })
    const more = ['Reply-To: bo@example.com']
    expect((await received({ from: 'Shop <no-reply@shop.example>', more })).person_id).toBe(bo.id)
    expect((await received({ from: 'wordpress@site.example', more })).person_id).toBe(bo.id)
    expect((await received({ from: 'ada@example.com', more })).person_id).toBe(ada.id)
  })

  it('shows its Reply-To addresses, to which an answer goes; else the answer goes to the authors', async () => {
    const order = await received({ from: 'no-reply@shop.example', more: ['Reply-To: Bo <bo@example.com>'] })
    expect(order.reply_addresses).toEqual(['bo@example.com'])
    const answer = await written({ parent_id: order.id, to: undefined })
    expect(answer.to).toEqual(['bo@example.com'])
    const joint = await received({ from: 'Ann <ann@example.com>, Bob <bob@example.com>' })
    expect([joint.from, joint.reply_addresses]).toEqual([['ann@example.com', 'bob@example.com'], []])
    const both = await written({ parent_id: joint.id, to: undefined })
    expect(both.to).toEqual(['ann@example.com', 'bob@example.com'])
    const reminder = await written({ parent_id: both.id, to: undefined })
    expect(reminder.to).toEqual(['ann@example.com', 'bob@example.com'])
    expect((await written({ parent_id: order.id })).to).toEqual(['ada@example.com'])
  })

  it('is stored beside another e-mail with its Message-ID, and once', async () => {
    const letter = (subject: string, hour: string, from = 'scan@example.com'): string =>
      lines(
        'Message-ID: <000@scanner>',
        `From: ${from}`,
        'To: crm@localhost',
        `Subject: ${subject}`,
        `Date: Sun, 1 Mar 2026 ${hour}:00:00 +0000`,
        '',
        subject,
      )
    const store = async (text: string): Promise<[number, boolean]> => {
      const { body } = await post({ email: text })
      return [body.data.id, body.data.duplicate]
    }
    const [first] = await store(letter('Order 1', '10'))
    const [second, isCopy] = await store(letter('Order 2', '11'))
    const [third] = await store(letter('Order 1', '10', 'other@example.com'))
    expect([isCopy, new Set([first, second, third]).size]).toEqual([false, 3])
    expect(await store(letter('Order 1', '10'))).toEqual([first, true])
    expect(await store(letter('Order 2', '11'))).toEqual([second, true])
    // A mailing list changes the subject or the text of a copy.
    expect(await store(letter('[list] Order 1', '10').replace('\r\n\r\n[list] ', '\r\n\r\n'))).toEqual([first, true])
  })

  it('do not depend on the order in which their mails come', async () => {
    const shapes = fc
      .array(fc.nat(), { minLength: 2, maxLength: 6 })
      .chain((links) =>
        fc.tuple(fc.constant(links), fc.shuffledSubarray([-1, ...links.keys()], { minLength: links.length + 1 })),
      )
    await fc.assert(
      fc.asyncProperty(shapes, async ([links, order]) => {
        await server.rewind()
        const apart = await received({ subject: 'Another' })
        // Each mail replies to the first mail or to an earlier reply, and lists all its
        // predecessors in References.
        const chains: string[][] = []
        for (const [index, link] of links.entries()) {
          const parent = link % (index + 1)
          chains.push(parent === 0 ? ['m-1@x'] : [...(chains[parent - 1] ?? []), `m${parent - 1}@x`])
        }
        const threads = new Set<number>()
        for (const index of order) {
          const chain = chains[index] ?? []
          const more = [`In-Reply-To: <${chain.at(-1)}>`, `References: ${chain.map((each) => `<${each}>`).join(' ')}`]
          threads.add((await received({ id: `m${index}@x`, more: chain.length > 0 ? more : [] })).thread_id)
        }
        expect([threads.size, threads.has(apart.id)]).toEqual([1, false])
      }),
      { numRuns: 15 },
    )
  })
})

describe('who wrote it', () => {
  it('files e-mails written by a user or this installation as sent, and moves no thread to the inbox', async () => {
    const offer = await written()
    for (const from of ['Admin@Example.com', 'no-reply@localhost']) {
      const mail = await received({ from, more: [`In-Reply-To: <${offer.message_id}>`] })
      expect(mail).toMatchObject({ sender_type: 'user', folders: ['sent'], is_read: true, thread_id: offer.id })
    }
    expect((await shown(offer.id)).folders).toEqual(['outbox'])
  })

  it('says whether a machine wrote it', async () => {
    expect((await received({ more: ['Auto-Submitted: auto-replied'] })).is_automatic).toBe(true)
    expect((await received({ more: ['Auto-Submitted: no'] })).is_automatic).toBe(false)
  })

  it('is visible to all who may open the inbox while it has no owner', async () => {
    const mail = await received()
    const { caller: reader } = await someone(server, ['mail', 'mail.inbox', 'mail.view'], {
      view_permission: 'individual',
    })
    expect((await reader.get(`/emails/${mail.id}`)).status).toBe(200)
    expect((await reader.get(`/emails/${mail.id}/raw`)).status).toBe(200)
  })
})

describe('what it brings', () => {
  const mixed = (html: string): Letter => ({
    more: ['MIME-Version: 1.0', 'Content-Type: multipart/related; boundary=b'],
    body: lines(
      '--b',
      'Content-Type: text/html',
      '',
      html,
      '--b',
      'Content-Type: image/png; name="../../etc/logo.png"',
      'Content-ID: <logo@x>',
      'Content-Transfer-Encoding: base64',
      'Content-Disposition: inline; filename="../../etc/logo.png"',
      '',
      pixel.toString('base64'),
      '--b',
      'Content-Type: text/html; name=page.html',
      'Content-Disposition: attachment; filename=page.html',
      '',
      '<script>1</script>',
      '--b--',
    ),
  })

  it('is cleaned: no script, no handlers, remote pictures marked, its own as links that work', async () => {
    const mail = await received(
      mixed(
        '<p onclick="x()">Hi<script>alert(1)</script><img src="cid:logo@x"><img src="https://t.example/p.gif"><a href="javascript:x">a</a></p>',
      ),
    )
    expect(mail.html).not.toMatch(/script|onclick/)
    expect(mail.html).toContain('<img data-remote="https://t.example/p.gif"')
    const link = /src="(http[^"]+)"/.exec(mail.html ?? '')?.[1]?.replaceAll('&amp;', '&') ?? ''
    const picture = await server.anonymous.get(`/${new URL(link).pathname.slice(0)}${new URL(link).search}`)
    expect([picture.status, picture.headers['content-type']]).toEqual([200, 'image/png'])
    expect(mail.attachments.map(({ name, content_type, content_id }) => [name, content_type, content_id])).toEqual([
      ['logo.png', 'image/png', 'logo@x'],
      ['page.html', 'text/html', null],
    ])
    const back = await server.admin.put(`/emails/${mail.id}`, { html: mail.html })
    expect([back.status, back.body.data.version]).toEqual([200, 1])
  })

  it('keeps the text alone of a body that is too much to show', async () => {
    const mail = await received({
      more: ['MIME-Version: 1.0', 'Content-Type: multipart/alternative; boundary=b'],
      body: lines(
        '--b',
        'Content-Type: text/plain',
        '',
        'short & sweet',
        '--b',
        'Content-Type: text/html',
        '',
        '<b>'.repeat(60_000),
        '--b--',
      ),
    })
    expect([mail.html, mail.text]).toEqual(['<p>short &amp; sweet</p>', 'short & sweet'])
  })

  it('survives 10,000 recipients, broken addresses and a subject with line breaks', async () => {
    const many = Array.from({ length: 10_000 }, (_, index) => `p${index}@example.com`)
    const mail = await received({ from: 'no address at all', to: many.join(',\r\n '), subject: 'a\r\n b\u0000c' })
    expect(mail.from).toEqual([])
    expect(mail.to).toHaveLength(1000)
    expect(mail.subject).not.toMatch(/[\r\n\0]/)
    const { body } = await post({ from: '@@ <>', to: many.join(', '), subject: 'x\r\nBcc: evil@example.com' })
    expect((await shown(body.data.id)).subject).toBe('x Bcc: evil@example.com')
  })
})

describe('a mail that cannot be read within bounds', () => {
  const deep = (id: string): string =>
    lines(
      `Message-ID: <${id}>`,
      'From: Ada Lovelace <ada@example.com>',
      'To: crm@localhost',
      'Subject: Deep',
      'Content-Type: multipart/mixed; boundary=b0',
      '',
      ...Array.from({ length: 1000 }, (_, n) => `--b${n}\r\nContent-Type: multipart/mixed; boundary=b${n + 1}\r\n`),
      'the text',
    )

  it('is stored with a note, in its thread, and its bytes stay as long as it does', async () => {
    const person = await given(server.admin).person({ emails: [{ value: 'ada@example.com' }] })
    const text = deep('deep@example.com')
    const { status, body } = await post({ email: text })
    expect([status, body.data.person_id, server.events().slice(-2)]).toEqual([200, person.id, created])
    const mail = await shown(body.data.id)
    const error = 'The e-mail cannot be read: it is nested too deeply or its headers are too long.'
    expect(mail).toMatchObject({
      subject: 'Deep',
      status: 'received',
      error,
      text: `${error} The original is attached as message.eml.`,
      attachments: [{ name: 'message.eml', size: text.length }],
    })
    expect((await post({ email: text })).body.data).toMatchObject({ id: mail.id, duplicate: true })
    for (let days = 0; days < 40; days += 10) {
      server.clock.advanceMs(10 * 24 * 3600 * 1000)
      await server.tick()
      await server.work()
    }
    const file = await server.admin.get(`/emails/${mail.id}/attachments/${mail.attachments[0]?.id}/download`)
    expect([file.status, file.text]).toEqual([200, text])
    expect((await server.admin.get(`/emails/${mail.id}/raw`)).status).toBe(404)
    const answer = await received({ more: ['In-Reply-To: <deep@example.com>'] })
    expect(answer.parent_id).toBe(mail.id)
  })

  it('keeps the hundred-and-first file in the original, and says so', async () => {
    const file = '--b\r\nContent-Type: application/x-y\r\n\r\nhi\r\n'
    const mail = await received({
      more: ['Content-Type: multipart/mixed; boundary=b'],
      body: `--b\r\n\r\nHello\r\n${file.repeat(101)}--b--`,
    })
    expect([mail.text, mail.error]).toEqual(['Hello', 'Attachments of the e-mail are not shown: 1.'])
    expect([mail.attachments.length, mail.attachments.at(-1)?.name]).toEqual([101, 'message.eml'])
  })
})

describe('the secret', () => {
  let closed: TestServer
  let open: TestServer
  const secret = inboundSecret
  beforeAll(async () => {
    closed = await startServer({ config: { inboundOpen: false, inboundSecret } })
    open = await startServer({ config: { inboundOpen: true, inboundSecret } })
    await open.keep()
  })
  beforeEach(() => open.rewind())
  afterAll(async () => {
    await closed.close()
    await open.close()
  })
  const postOpen = async (letter: Letter, headers: Record<string, string> = {}): Promise<Reply> => {
    const sent = await form({ email: raw(letter) })
    return open.anonymous.post(path, sent.body, { headers: { ...sent.headers, ...headers } })
  }

  it.each<[string, string, Record<string, string>]>([
    ['in the query', `?secret=${encodeURIComponent(secret)}`, {}],
    ['in a header', '', { 'x-inbound-secret': secret }],
    ['as Basic password', '', { authorization: `Basic ${Buffer.from(`any:${secret}`).toString('base64')}` }],
  ])('opens %s', async (_where, query, headers) => {
    const sent = await form({ email: raw() })
    const { status, body } = await closed.anonymous.post(path + query, sent.body, {
      headers: { ...sent.headers, ...headers },
    })
    expect(status).toBe(200)
    expect(Object.keys(body.data)).toEqual(['id', 'duplicate', 'parent_id', 'person_id'])
  })

  it('refuses anything else with a problem, never with a page, before the body is read', async () => {
    closed.events()
    for (const [query, headers] of [
      ['', {}],
      ['?secret=', {}],
      ['?secret=open', { 'x-inbound-secret': `${secret}x` }],
      ['', { authorization: `Basic ${Buffer.from(secret).toString('base64')}` }],
      ['', { authorization: closed.admin.token === null ? '' : `Bearer ${closed.admin.token}` }],
    ] as const) {
      const {
        status,
        body,
        headers: answered,
      } = await closed.anonymous.post(path + query, 'no form', {
        headers: { accept: 'text/html', 'content-type': 'multipart/form-data; boundary=x', ...headers },
      })
      expect([status, body.code, answered['content-type']]).toEqual([
        401,
        'unauthenticated',
        'application/problem+json; charset=utf-8',
      ])
    }
    expect(closed.events()).toEqual([])
  })

  it('is derived from the key material when none is set, so that no installation is open by default', async () => {
    const derived = await startServer({ config: { inboundOpen: false, inboundSecret: null } })
    const sent = await form({ email: raw() })
    const send = (headers: Record<string, string>) =>
      derived.anonymous.post(path, sent.body, { headers: { ...sent.headers, ...headers } })
    expect((await send({})).status).toBe(401)
    const own = inboundSecretOf(null, derived.app.services.encryption)
    expect(own).toMatch(/^[\w-]{43}$/)
    expect((await send({ 'x-inbound-secret': own })).body.data).toMatchObject({ duplicate: false })
    expect(inboundSecretOf(null, createEncryption('another secret of at least thirty-two characters'))).not.toBe(own)
    await derived.close()
  })

  it('reveals nothing to callers without it where the route is open', async () => {
    const person = await given(open.admin).person({ emails: [{ value: 'known@example.com' }] })
    const sent = await open.admin.post('/emails', {
      subject: 'Offer',
      html: '<p>Hi</p>',
      to: ['known@example.com'],
    })
    const answering = { more: [`In-Reply-To: <${sent.body.data.message_id}>`] }
    const letters: Letter[] = [
      { id: 'a@x', from: 'unknown@example.com' },
      { id: 'b@x', from: 'known@example.com' },
      { id: 'c@x', from: 'unknown@example.com', ...answering },
      { id: 'd@x', from: 'admin@example.com' },
      { id: 'a@x', from: 'unknown@example.com' },
      { id: sent.body.data.message_id, from: 'unknown@example.com' },
    ]
    const seen: unknown[] = []
    for (const letter of letters)
      for (const headers of [{}, { 'x-inbound-secret': 'a guess' }]) {
        const { status, text, headers: answered } = await postOpen(letter, headers)
        const names = Object.keys(answered).sort()
        seen.push(JSON.stringify([status, text, answered['content-length'], names]))
      }
    expect(new Set(seen).size).toBe(1)
    expect(seen[0]).toContain(JSON.stringify(JSON.stringify({ message: 'E-mail received.' })))
    const known = await postOpen({ id: 'e@x', from: 'known@example.com' }, proven)
    expect(known.body.data).toMatchObject({ duplicate: false, person_id: person.id })
  })

  it('saves a call from the limit of 60 a minute from one address', async () => {
    const letter = { id: 'again@x' }
    const statuses = []
    for (let call = 0; call < 61; call++) statuses.push(await postOpen(letter))
    expect(statuses.slice(0, 60).every(({ status }) => status === 200)).toBe(true)
    const last = statuses[60]
    expect([last?.status, last?.body.code, last?.headers['retry-after']]).toEqual([429, 'rate_limited', '60'])
    expect((await postOpen(letter, proven)).status).toBe(200)
    open.clock.advanceMs(60_000)
    expect((await postOpen(letter)).status).toBe(200)
  })

  it('counts addresses of IPv6 by their network', async () => {
    const { body, headers } = await form({ email: raw({ id: 'again@x' }) })
    const from = async (remoteAddress: string): Promise<number> =>
      (await open.inject({ method: 'POST', url: path.slice(1), payload: body, headers, remoteAddress })).statusCode
    for (let call = 0; call < 60; call++) await from(`2001:db8::${call.toString(16)}`)
    expect(await from('2001:db8:0:0:ffff::1')).toBe(429)
    expect(await from('2001:db8:0:1::1')).toBe(200)
    expect(await from('192.0.2.1')).toBe(200)
  })

  it('is of no use where mail is fetched from a mailbox', async () => {
    const polling = await startServer({ config: { mailReceiver: 'webklex-imap', inboundSecret: secret } })
    const sent = await form({ email: raw() })
    const { status, body } = await polling.anonymous.post(`${path}?secret=${secret}`, sent.body, {
      headers: sent.headers,
    })
    expect([status, body.code]).toEqual([404, 'not_found'])
    await polling.close()
  })
})

describe('the bytes as they came', () => {
  it('go after 30 days, and leave the mail as it is', async () => {
    const mail = await received()
    await server.work()
    server.clock.advanceMs(30 * 24 * 3600 * 1000)
    await server.tick()
    await server.work()
    expect((await server.admin.get(`/emails/${mail.id}/raw`)).status).toBe(200)
    server.events()
    server.clock.advanceMs(24 * 3600 * 1000)
    await server.tick()
    await server.work()
    expect((await server.admin.get(`/emails/${mail.id}/raw`)).status).toBe(404)
    expect([await shown(mail.id), server.events()]).toEqual([mail, []])
    expect(await server.store.db.selectFrom('files').select('id').execute()).toEqual([])
  })
})
