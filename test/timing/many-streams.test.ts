// Many event streams beside ten writes a second: every stream gets every event, and other requests
// are answered meanwhile. The full run (`npm run test:faults`) opens 5,000 streams and prints
// measurements.
import { expect, it } from 'vitest'
import { issueToken } from '../../src/kernel/auth/tokens.ts'
import { isFull } from '../faults/serving.ts'
import { start } from '../support/app.ts'
import { listeningServer } from '../support/listening.ts'
import { useOne } from '../support/using.ts'
import { follow, probe } from './many-streams.ts'

const perToken = 5
const tokensOfUser = 10
const users = isFull ? 100 : 6
const seconds = isFull ? 20 : 2
const writesPerSecond = 10
/** The longest accepted time of GET /healthz in milliseconds, with room for a slow machine. */
const longestMs = 1_000

const server = useOne(listeningServer)

/** Inserts users like the administrator, and returns their tokens. */
async function tokensOfUsers(): Promise<string[]> {
  const { db } = server.store
  const { id: _id, ...admin } = await db.selectFrom('users').selectAll().where('id', '=', 1).executeTakeFirstOrThrow()
  const rows = Array.from({ length: users }, (_, index) => ({
    ...{ ...admin, email: `follower${index}@example.com`, email_key: `follower${index}@example.com` },
  }))
  const added = await db.insertInto('users').values(rows).returning('id').execute()
  const texts: string[] = []
  for (const { id: userId } of added)
    for (let made = 0; made < tokensOfUser; made++) {
      const wanted = { userId, name: `t${made}`, kind: 'personal', expiresAt: null } as const
      texts.push((await issueToken(db, { ...wanted, abilities: ['*'], allowedIps: [] }, start)).text)
    }
  return texts
}

it('all get every event, while other requests are answered', { timeout: 300_000 }, async () => {
  const tokens = await tokensOfUsers()
  const [writer = ''] = tokens
  const streams = follow(server.url, tokens, perToken)
  await streams.ready
  const health = probe(server.url, 20)
  await health.ready
  const headers = { authorization: `Bearer ${writer}`, accept: 'application/json', 'content-type': 'application/json' }
  const writes = seconds * writesPerSecond
  const began = performance.now()
  const asked: Promise<void>[] = []
  for (let made = 0; made < writes; made++) {
    const body = JSON.stringify({ name: `Tag ${made}` })
    asked.push(
      fetch(`${server.url}/api/admin/tags`, { method: 'POST', headers, body }).then(async (reply) => {
        expect(reply.status, await reply.text()).toBe(201)
      }),
    )
    await new Promise((resolve) =>
      setTimeout(resolve, began + ((made + 1) * 1000) / writesPerSecond - performance.now()),
    )
  }
  await Promise.all(asked)
  const times = await health.stop()
  // The streams have a moment for the last events.
  await new Promise((resolve) => setTimeout(resolve, isFull ? 5_000 : 1_500))
  const { received } = await streams.stop()
  if (isFull)
    console.log(
      `${tokens.length * perToken} streams, ${writes} writes in ${seconds} s: ${JSON.stringify(received)} events; ` +
        `healthz p50 ${times.p50.toFixed(1)}, p99 ${times.p99.toFixed(1)}, max ${times.max.toFixed(1)} ms of ${times.count}`,
    )
  expect(received).toEqual({ [writes]: tokens.length * perToken })
  expect(times.max).toBeLessThan(longestMs)
})
