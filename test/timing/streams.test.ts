// The server memory for a slow reader of the event stream, and the time that a closing server waits
// for readers. test/resources/events.stream.test.ts tests the content.
import { beforeAll, expect, it } from 'vitest'
import { issueToken } from '../../src/kernel/auth/tokens.ts'
import { start } from '../support/app.ts'
import { listeningServer } from '../support/listening.ts'
import { readStream } from '../support/sse.ts'
import { useOne } from '../support/using.ts'

let token: string
const server = useOne(listeningServer)
beforeAll(async () => {
  const wanted = { userId: 1, name: 't', kind: 'personal', expiresAt: null } as const
  token = (await issueToken(server.store.db, { ...wanted, abilities: ['*'], allowedIps: [] }, start)).text
})

let tags = 0
const addTag = async (): Promise<void> => {
  const headers = { authorization: `Bearer ${token}`, accept: 'application/json', 'content-type': 'application/json' }
  const body = JSON.stringify({ name: `Tag ${++tags}` })
  expect((await fetch(`${server.url}/api/admin/tags`, { method: 'POST', headers, body })).status).toBe(201)
}

const held = (): number => process.memoryUsage().arrayBuffers + process.memoryUsage().external

it('keeps a slow reader waiting without keeping what it has not taken', async () => {
  await addTag()
  const { db } = server.store
  const { id: from, ...row } = await db.selectFrom('events').selectAll().orderBy('id', 'desc').executeTakeFirstOrThrow()
  const reader = await readStream(`${server.url}/api/admin/events`, token)
  reader.pause()
  const after = JSON.stringify({ id: 1, name: 'x'.repeat(50_000) })
  const copies = Array.from({ length: 100 }, () => ({ ...row, after }))
  const before = held()
  for (let part = 0; part < 4; part++) await db.insertInto('events').values(copies).execute()
  await addTag()
  // Waits until the server has sent all data that the buffers accept.
  await new Promise((resolve) => setTimeout(resolve, 1_000))
  expect(held() - before).toBeLessThan(15 * 1024 * 1024)
  reader.resume()
  await reader.until(401)
  const ids = await db.selectFrom('events').select('id').where('id', '>', from).orderBy('id').execute()
  expect(reader.told.map(({ id }) => Number(id))).toEqual(ids.map(({ id }) => id))
  reader.cut()
})

it('ends its streams when the server closes, which waits for none of them', async () => {
  const other = await listeningServer()
  const wanted = { userId: 1, name: 't', kind: 'personal', expiresAt: null } as const
  const { text } = await issueToken(other.store.db, { ...wanted, abilities: ['*'], allowedIps: [] }, start)
  const reader = await readStream(`${other.url}/api/admin/events`, text)
  const began = performance.now()
  const closing = other.close()
  await reader.ended
  await closing
  // The server closes streams that have not ended after eight seconds.
  expect(performance.now() - began).toBeLessThan(7_900)
})
