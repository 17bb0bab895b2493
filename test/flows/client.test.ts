// Runs client/program.ts, which uses only the contract, against a real server.
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { adminPassword } from '../support/app.ts'
import { listeningServer } from '../support/listening.ts'
import { startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { useOne } from '../support/using.ts'
import { program } from './client/program.ts'

const receiver = useOne(startReceiver)
const server = useOne(() =>
  listeningServer({
    adminPassword,
    worker: true,
    webhookAllowHttp: true,
    webhookAllowCidrs: ['127.0.0.1/32'],
  }),
)

it('signs in, writes safely, reads every page, is told with a signature and follows the feed', async () => {
  const told = async () => {
    await until(() => receiver.received.length > 0)
    const [{ headers, body } = { headers: {}, body: '' }] = receiver.received
    return { headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)])), body }
  }
  const who = { email: 'admin@example.com', password: adminPassword }
  expect(await program(server.url, who, `${receiver.url}/hooks`, told)).toEqual({
    reason: ['validation_failed', 'title'],
    isOnce: true,
    titles: ['40 seats'],
    title: '50 seats',
    late: 'version_mismatch',
    event: expect.objectContaining({ type: 'lead.create.after' }),
    feed: ['lead.create.after', 'lead.update.after'],
  })
})

it('is a program of about sixty lines without a cast', () => {
  const lines = readFileSync(new URL('client/program.ts', import.meta.url), 'utf8')
    .trimEnd()
    .split('\n')
  expect(lines.length).toBeLessThanOrEqual(65)
  expect(lines.filter((line) => /\bas (?!const\b)|@ts-|\bany\b|<unknown>/.test(line))).toEqual([])
})
