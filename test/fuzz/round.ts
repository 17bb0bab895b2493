// A round: a new world, a few thousand requests with background work in between, and a check of the
// final state. Rounds keep the database small, and a finding can be repeated from the start of its
// round.
import type { InjectOptions } from 'fastify'
import { OutboundError } from '../../src/kernel/outbound/client.ts'
import { MailDeferred, type Mailer, MailRefused } from '../../src/mail/outbound.ts'
import { startWorld, type World } from '../contract/support.ts'
import { fact, facts } from '../support/schema.ts'
import { aftermath } from './aftermath.ts'
import { findingsOf, isJson, isStream, unanswered } from './check.ts'
import { listenToLog } from './log.ts'
import { peopleOf } from './people.ts'
import { forget, learn, type Pool, poolOf } from './pool.ts'
import { type Random, randomOf } from './random.ts'
import { requestOf, type Wanted } from './requests.ts'
import { abuse, bytesOf, exchange, type Received } from './socket.ts'

export interface Answered {
  index: number
  wanted: Wanted
  operation: string | null
  status: number
  ms: number
}

export interface Finding {
  index: number
  wanted: Wanted | null
  sentences: string[]
  excerpt: string
}

export interface RoundOptions {
  seed: number
  from: number
  to: number
  only: readonly string[]
  onAnswer(answered: Answered): void
  onFinding(finding: Finding): void
}

/** A request without a reply after this time is a finding. */
const patienceMs = 20_000

export async function fuzzRound({ seed, from, to, only, onAnswer, onFinding }: RoundOptions): Promise<void> {
  const world = await startWorld({ mailer: mailerOf(), outbound: outboundOf(), config: { mailReceiver: 'sendgrid' } })
  const { server } = world
  // The world has records that no request wrote.
  await server.app.services.searchIndex.rebuildOnline(server.store)
  const logged = listenToLog(server)
  let current: Wanted | null = null
  let index = from
  const report = (sentences: string[], excerpt = ''): void => {
    if (sentences.length > 0) onFinding({ index, wanted: current, sentences, excerpt })
  }
  try {
    report(world.missing.map((each) => `The world could not be made: ${each}`))
    const port = await listen(world)
    const pool = poolOf(world)
    const people = await peopleOf(server)
    // Operations that create records are chosen four times as often, because other requests delete
    // records.
    const among = (only.length > 0 ? only : served()).flatMap((id) => (fact(id).location ? [id, id, id, id] : [id]))
    for (; index < to; index++) {
      const random = randomOf(seed, index)
      const wanted = requestOf(random, pool, server, among)
      const authorization = people.headerOf(wanted.who, random, pool)
      if (authorization && !wanted.headers.some(([name]) => name === 'authorization'))
        wanted.headers.push(authorization)
      current = wanted
      if (wanted.operation !== null && fact(wanted.operation).public) await forgive(world, random)
      const began = performance.now()
      let hasFailed = false
      const received = await deliver(world, wanted, random, port).catch((cause: unknown) => {
        hasFailed = true
        report([String(cause instanceof Error ? cause.message : cause)])
        return undefined
      })
      const ms = performance.now() - began
      if (received) {
        const { operation, findings } = findingsOf(wanted, received, wanted.transport === 'abused')
        report([...findings, ...logged.take()], received.bytes.subarray(0, 1_500).toString())
        onAnswer({ index, wanted, operation, status: received.status, ms })
        remember(pool, wanted, operation, received)
        if (received.status === 401) await people.renew(wanted.who)
      } else {
        if (!hasFailed) report([...unanswered(wanted), ...logged.take()])
        onAnswer({ index, wanted, operation: null, status: 0, ms })
      }
      if (index % 500 === 0) await people.renew('admin')
      current = null
      await background(world, randomOf(~seed, index))
      report(logged.take())
    }
    report(await aftermath(world, () => logged.take()))
  } finally {
    await server.close()
  }
}

export const served = (): string[] => facts.map(([id]) => id)

async function listen({ server }: World): Promise<number> {
  await server.app.http.listen({ host: '127.0.0.1', port: 0 })
  const address = server.app.http.server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

/** Usually resets the counts of call limits, which other tests check. */
export async function forgive({ server: { store } }: World, random: Random): Promise<void> {
  if (random.chance(0.1)) return
  await store.db.deleteFrom('call_counts').execute()
  await store.db.deleteFrom('login_attempts').execute()
}

async function deliver({ server }: World, wanted: Wanted, random: Random, port: number): Promise<Received | undefined> {
  const { method, url, headers, bytes, transport } = wanted
  if (transport !== 'inject') {
    const raw = transport === 'abused' ? abuse(random, wanted) : bytesOf(wanted)
    // Does not wait long for event streams and damaged requests.
    return exchange(port, raw, transport === 'abused' || isStream(wanted) ? 600 : patienceMs)
  }
  // Event streams are not requested, because `inject` waits for the end of the reply.
  const sent = Object.fromEntries(headers.filter((header) => !isStream({ headers: [header] })))
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`had no answer after ${patienceMs} ms.`)), patienceMs)
  })
  const reply = server.inject({
    method: method as NonNullable<InjectOptions['method']>,
    url,
    headers: sent,
    ...(bytes !== undefined && { payload: bytes }),
  })
  const answer = await Promise.race([reply, late]).finally(() => clearTimeout(timer))
  return { status: answer.statusCode, headers: answer.headers as Record<string, string>, bytes: answer.rawPayload }
}

export function remember(
  pool: Pool,
  { url, who, transport }: Wanted,
  operation: string | null,
  received: Received,
): void {
  if (operation === null || transport === 'abused') return
  const path = (url.split('?')[0] ?? '').replace(/\/+$/, '')
  const isGone = received.status === 404 && who === 'admin'
  if (isGone || (received.status === 200 && fact(operation).method === 'delete')) forget(pool, operation, path)
  else if (received.status < 300) learn(pool, operation, path, received.headers, readBody(received))
}

function readBody({ headers, bytes }: Received): unknown {
  try {
    return isJson(headers['content-type'] ?? '') ? JSON.parse(bytes.toString()) : undefined
  } catch {
    return undefined
  }
}

export async function background({ server }: World, random: Random): Promise<void> {
  if (random.chance(0.3)) server.clock.advanceMs(random.whole(1, 20_000))
  if (random.chance(0.01)) await server.work()
  if (random.chance(0.002)) {
    server.clock.advanceMs(random.whole(1, 24) * 3_600_000)
    await server.tick()
  }
}

/** Returns a fake mailer that behaves in all allowed ways in turn. */
export function mailerOf(): Mailer {
  let count = 0
  return {
    isConfigured: true,
    check: async () => null,
    async send({ to }) {
      count++
      if (count % 7 === 3) throw new MailRefused('550 No such user.')
      if (count % 7 === 5) throw new MailDeferred('451 Come again.')
      return {
        response: '250 OK',
        refused: count % 5 === 0 && to[0] ? [{ address: String(to[0]), reason: '550' }] : [],
      }
    },
    close: () => undefined,
  }
}

export function outboundOf() {
  let count = 0
  return {
    async request() {
      count++
      if (count % 5 === 4) throw new OutboundError('connect', 'The connection was refused.')
      const status = [200, 204, 500, 302, 410][count % 5] ?? 200
      return { status, headers: { 'content-type': 'text/plain' }, excerpt: '\u0000\ufffd<b>{{x}}', ms: 3 }
    },
  }
}
