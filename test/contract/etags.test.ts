// An ETag identifies the bytes of a reply: after each write of the contract, 304 is the answer only
// where the reply is still the same.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bodySchema, fact, facts, follow, parametersOf, takesHeader } from '../support/schema.ts'
import { change, request, urlOf } from './support.ts'
import { useWorld } from './use-world.ts'

const world = useWorld()
const handled = facts.filter(([, { servedBy }]) => servedBy === 'handler').map(([id]) => id)
const writes = handled.filter((id) => fact(id).method !== 'get')
const reads = handled.filter((id) => takesHeader(id, 'If-None-Match'))

interface Copy {
  id: string
  url: string
  token: string | null
  etag: string
  text: string
}

/** What each caller has in its cache before a write. */
const copies: Copy[] = []
const counts = { writes: 0, compared: 0, changed: 0 }
/** Every read follows every write with ACCORD_TEST_FULL=1. Otherwise each write takes its turn. */
const share = process.env.ACCORD_TEST_FULL ? 1 : 10

async function get({ url, token }: Pick<Copy, 'url' | 'token'>, etag?: string) {
  const headers = {
    accept: 'application/json',
    authorization: `Bearer ${token}`,
    ...(etag && { 'if-none-match': etag }),
  }
  const { statusCode: status, headers: got, body: text } = await world.server.inject({ method: 'GET', url, headers })
  return { status, etag: String(got.etag), text }
}

/** The URLs of a read: of the linked and the spare record, and with everything included. */
function urlsOf(id: string): string[] {
  const own = request(world, id).url
  const included = parametersOf(id, 'query').find(({ name }) => name === 'include')
  const words = follow(follow(included?.schema).items).enum as string[] | undefined
  return [...new Set([own, urlOf(world, id, world.spare), ...(words ? [`${own}?include=${words.join(',')}`] : [])])]
}

beforeAll(async () => {
  const limited = await world.server.as(world.main.users ?? 0)
  await world.server.keep()
  for (const id of reads)
    for (const url of urlsOf(id))
      for (const token of [world.server.admin.token, limited.token]) {
        const { status, etag, text } = await get({ url, token })
        if (status === 200) copies.push({ id, url, token, etag, text })
      }
})

afterAll(() => {
  expect(counts.changed).toBeGreaterThan(counts.writes / share)
  if (share === 1) console.log(`ETags: ${JSON.stringify({ copies: copies.length, ...counts })}`)
})

async function falselyKnown(): Promise<string[]> {
  const found: string[] = []
  counts.writes++
  for (const copy of copies.filter((_, at) => at % share === counts.writes % share)) {
    const fresh = await get(copy)
    counts.compared++
    if (fresh.status !== 200 || fresh.text === copy.text) continue
    counts.changed++
    if ((await get(copy, copy.etag)).status === 304) found.push(`${copy.id} ${copy.url}`)
  }
  return found
}

/** Other values for the fields of a body that are plain texts, flags or numbers. */
function varied(id: string, body: Record<string, unknown>): Record<string, unknown> {
  const properties = bodySchema(id)?.properties ?? {}
  const other = (name: string, value: unknown): unknown => {
    const { format, pattern, enum: words } = follow(properties[name])
    if (typeof value === 'string') return (format ?? pattern ?? words) ? value : `${value} again`
    return typeof value === 'boolean' ? !value : typeof value === 'number' && !/_id$/.test(name) ? value + 1 : value
  }
  return Object.fromEntries(Object.entries(body).map(([name, value]) => [name, other(name, value)]))
}

describe.each(writes)('%s', (id) => {
  it('leaves a 304 only to replies that are still the same bytes', async () => {
    await world.server.rewind()
    await change(world, id)
    expect(await falselyKnown()).toEqual([])
  }, 60_000)
})

describe.each(writes.filter((id) => id.startsWith('update')))('%s', (id) => {
  it('does so for each field of its body', async () => {
    await world.server.rewind()
    const { method, url, body = {} } = request(world, id)
    const headers = { authorization: `Bearer ${world.server.admin.token}`, accept: 'application/json' }
    let sent = varied(id, body)
    for (let patience = 3; patience > 0; patience--) {
      const reply = await world.server.inject({ method: method as 'PUT', url, headers, payload: sent })
      if (reply.statusCode !== 422) break
      const { errors = {} } = reply.json() as { errors?: object }
      const refused = Object.keys(errors).map((field) => field.split('.')[0])
      sent = Object.fromEntries(Object.entries(sent).filter(([name]) => !refused.includes(name)))
    }
    expect(await falselyKnown()).toEqual([])
  }, 60_000)
})
