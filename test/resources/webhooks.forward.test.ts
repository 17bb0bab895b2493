// Events that are sent to one address without a webhook, as `accord listen` does: with the body and
// signature of a webhook, and only what the user may see.
import { createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { permissionKeys } from '../../src/contract/operations.gen.ts'
import { signedInAs } from '../../src/kernel/auth/tokens.ts'
import { systemContext } from '../../src/kernel/context.ts'
import { newestEvent } from '../../src/kernel/write/event-log.ts'
import { type Forwarded, forwardEvents, forwardingSecret } from '../../src/resources/webhooks/forward.ts'
import { given } from '../support/given.ts'
import { useReceiver } from '../support/outside.ts'
import { firstReceived } from '../support/receiver.ts'
import { useServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const receiver = useReceiver()
const server = useServer({ config: { webhookAllowHttp: true, webhookAllowCidrs: ['127.0.0.0/8'] } })

const system = () => systemContext(server.app.services, 'cli')
const newest = () => newestEvent(system())
const received = () => receiver.received.map(({ body }) => JSON.parse(body))

async function forward(after: number, { events = ['*'], userId = 1, signal = new AbortController().signal } = {}) {
  const user = await signedInAs(system().db, userId)
  if (user === null) throw new Error('The user cannot sign in.')
  const told: Forwarded[] = []
  const tell = (sent: Forwarded): void => void told.push(sent)
  const next = await forwardEvents(system(), { url: `${receiver.url}/hook`, events, user }, after, { tell, signal })
  return { next, told }
}

describe('a forwarded event', () => {
  it('has the body and the headers of the delivery of a webhook', async () => {
    const hook = { name: 'Warehouse', url: `${receiver.url}/hook`, events: ['lead.create.after'] }
    expect((await server.admin.post('/settings/webhooks', hook)).status).toBe(201)
    const after = await newest()
    await given(server.admin).lead({ title: 'Chairs' })
    await server.work()
    const { told, next } = await forward(after, { events: ['lead.create.after'] })
    const [delivered, forwarded] = receiver.received
    const { id: _own, ...body } = JSON.parse(delivered?.body ?? '')
    const { id, ...same } = JSON.parse(forwarded?.body ?? '')
    expect(same).toEqual(body)
    expect(Object.keys(forwarded?.headers ?? {}).sort()).toEqual(Object.keys(delivered?.headers ?? {}).sort())
    expect(told).toMatchObject([{ name: 'lead.create.after', message_id: id, attempt: { status: 200, error: null } }])
    expect(next).toBe(await newest())
  })

  it('is signed with a secret that is the same each time', async () => {
    const after = await newest()
    await given(server.admin).lead({ title: 'Tables' })
    await forward(after, { events: ['lead.create.after'] })
    const { headers, body } = firstReceived(receiver)
    const secret = forwardingSecret(system())
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
    expect(forwardingSecret(system())).toBe(secret)
    const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
    const content = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`
    expect(headers['webhook-signature']).toBe(`v1,${createHmac('sha256', key).update(content).digest('base64')}`)
  })

  it('is one that the user may see and that a pattern names', async () => {
    const eve = await addUser(server, 'Eve', { view: 'individual', permissions: [...permissionKeys] })
    const { id } = (await eve.get('/account')).body.data
    const after = await newest()
    await given(server.admin).lead({ title: 'Other', user_id: 1 })
    await given(eve).lead({ title: 'Own' })
    expect((await server.admin.post('/tags', { name: 'New', color: '#337CFF' })).status).toBe(201)
    await forward(after, { events: ['lead.create.after', 'settings.tag.*.after'], userId: id })
    expect(received().map(({ type, data }) => [type, data.after.title ?? data.after.name])).toEqual([
      ['lead.create.after', 'Own'],
      ['settings.tag.create.after', 'New'],
    ])
  })

  it('that the receiver refuses is told, and the next one is sent', async () => {
    const after = await newest()
    await given(server.admin).lead({ title: 'First' })
    await given(server.admin).lead({ title: 'Second' })
    receiver.behave({ mode: 'status', status: 500 }, ({ body }) => body.includes('First'))
    const { told, next } = await forward(after, { events: ['lead.create.after'] })
    expect(told.map(({ attempt }) => [attempt.status, attempt.error])).toEqual([
      [500, 'The receiver answered 500.'],
      [200, null],
    ])
    expect(next).toBe(await newest())
  })

  it('that nothing listens for is told', async () => {
    const after = await newest()
    await given(server.admin).lead({ title: 'Lost' })
    await receiver.stop()
    const { told } = await forward(after, { events: ['lead.create.after'] })
    await receiver.start()
    expect(told[0]?.attempt).toMatchObject({ status: null, error: 'No connection to 127.0.0.1 (ECONNREFUSED).' })
  })

  it('is not sent after the listener ends, nor when the log is shorter than before', async () => {
    const after = await newest()
    await given(server.admin).lead({ title: 'Late' })
    await expect(forward(after, { signal: AbortSignal.abort() })).rejects.toThrow('aborted')
    expect((await forward(after + 1_000)).next).toBe(await newest())
    expect(received()).toEqual([])
  })
})
