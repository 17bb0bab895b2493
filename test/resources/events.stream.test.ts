// The change feed as server-sent events over real connections: events arrive immediately, a resumed
// stream misses none, and a stream ends with its token.
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { issueToken, signedInAs } from '../../src/kernel/auth/tokens.ts'
import { type Context, systemContext } from '../../src/kernel/context.ts'
import { nextPart } from '../../src/resources/events/shared-parts.ts'
import { adminPassword, start } from '../support/app.ts'
import { listeningServer } from '../support/listening.ts'
import { type Reader, readStream } from '../support/sse.ts'
import { until } from '../support/until.ts'
import { useOne } from '../support/using.ts'

let api: string
let admin: string
const readers: Reader[] = []
let count = 0

const server = useOne(listeningServer)
beforeAll(async () => {
  api = `${server.url}/api/admin`
  const login = await call(
    'POST',
    '/login',
    { email: 'admin@example.com', password: adminPassword, device_name: 'a' },
    '',
  )
  admin = login.data.token
})
afterEach(() => {
  for (const reader of readers.splice(0)) reader.cut()
})

async function call(method: string, path: string, body?: unknown, token = admin): Promise<any> {
  const answer = await fetch(api + path, {
    method,
    headers: {
      accept: 'application/json',
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(token && { authorization: `Bearer ${token}` }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  return answer.json()
}

async function follow(query = '', headers: Record<string, string> = {}, token = admin): Promise<Reader> {
  const reader = await readStream(`${api}/events${query}`, token, headers)
  readers.push(reader)
  return reader
}

const addTag = async (): Promise<any> => (await call('POST', '/tags', { name: `Tag ${++count}` })).data

const tokenOf = async (userId: number, changes: object = {}): Promise<string> =>
  (
    await issueToken(
      server.store.db,
      { userId, name: 't', kind: 'personal', abilities: ['*'], expiresAt: null, allowedIps: [], ...changes },
      start,
    )
  ).text

async function addUser(view = 'individual'): Promise<{ id: number; token: string }> {
  const number = ++count
  const { data } = await call('POST', '/settings/users', {
    name: `User ${number}`,
    email: `user${number}@example.com`,
    role_id: 1,
    view_permission: view,
    password: 'a password to guess',
    password_confirmation: 'a password to guess',
  })
  return { id: data.id, token: await tokenOf(data.id) }
}

/** Returns the ids of the events after a position. */
async function logged(after: number): Promise<number[]> {
  const rows = await server.store.db.selectFrom('events').select('id').where('id', '>', after).orderBy('id').execute()
  return rows.map(({ id }) => id)
}

describe('listEvents as a stream', () => {
  it('begins with what happens from now on, and tells of it at once', async () => {
    await addTag()
    const reader = await follow()
    expect([reader.status, reader.headers['content-type'], reader.headers['cache-control']]).toEqual([
      200,
      'text/event-stream',
      'no-store',
    ])
    expect(reader.headers['x-accel-buffering']).toBe('no')
    const tag = await addTag()
    const [told] = await reader.until(1)
    expect([told?.event, told?.data.entity_id, told?.data.after.name]).toEqual([
      'settings.tag.create.after',
      tag.id,
      tag.name,
    ])
    expect(told?.id).toBe(String(told?.data.id))
    expect(reader.told).toHaveLength(1)
  })

  it('begins behind `after`, with what the pages would show', async () => {
    const { data } = await call('GET', '/events?per_page=100')
    const reader = await follow('?after=0')
    const told = await reader.until(data.length)
    expect(told.map((each) => each.data)).toEqual(data)
  })

  it('tells what a filter means and nothing else', async () => {
    const reader = await follow('?name=settings.tag.delete.*')
    const tag = await addTag()
    await call('DELETE', `/tags/${tag.id}`)
    const told = await reader.until(1)
    expect(told.map(({ event }) => event)).toEqual(['settings.tag.delete.after'])
  })

  it('misses nothing and repeats nothing when it is cut off again and again while others write', async () => {
    const [from = 0] = (await logged(0)).slice(-1)
    const wanted = 60
    const writing = Promise.all(
      [1, 2, 3].map(async () => {
        for (let each = 0; each < wanted / 3; each++) await addTag()
      }),
    )
    const told: string[] = []
    let place = String(from)
    for (let turn = 1; told.length < wanted; turn++) {
      const reader = await follow('', { 'last-event-id': place })
      await reader.until(Math.min(turn, wanted - told.length))
      reader.cut()
      told.push(...reader.told.map(({ id }) => id))
      place = reader.place()
    }
    await writing
    expect(told).toEqual((await logged(from)).map(String))
  })

  it('tells what another process has written', async () => {
    const reader = await follow()
    await addTag()
    await reader.until(1)
    // Inserts an event directly, like another process, without calling listeners of this process.
    const row = await server.store.db.selectFrom('events').selectAll().orderBy('id', 'desc').executeTakeFirstOrThrow()
    const { id: _, ...copy } = row
    await server.store.db.insertInto('events').values(copy).execute()
    expect(await reader.until(2)).toHaveLength(2)
  })

  it('shows a reader what it may see at the time, no sooner and no longer', async () => {
    const { id, token } = await addUser()
    const reader = await follow('?entity_type=leads', {}, token)
    const hidden = (await call('POST', '/leads', { title: 'Of another', lead_value: 1, person: await person() })).data
    const shown = (await call('POST', '/leads', { title: 'Own', lead_value: 1, user_id: id, person: await person() }))
      .data
    expect((await reader.until(1)).map(({ data }) => data.entity_id)).toEqual([shown.id])
    await call('PUT', `/settings/users/${id}`, { view_permission: 'global' })
    await call('PUT', `/leads/${hidden.id}`, { title: 'In sight now' })
    expect((await reader.until(2)).map(({ data }) => data.entity_id)).toEqual([shown.id, hidden.id])
    await call('PUT', `/settings/users/${id}`, { view_permission: 'individual' })
    await call('PUT', `/leads/${hidden.id}`, { title: 'Out of sight' })
    await call('PUT', `/leads/${shown.id}`, { title: 'Own again' })
    expect((await reader.until(3)).map(({ data }) => data.entity_id)).toEqual([shown.id, hidden.id, shown.id])
  })

  const person = async () => ({ name: `Person ${++count}`, emails: [{ value: `person${count}@example.com` }] })

  it('refuses a place that is gone or none before the stream begins', async () => {
    const bad = await follow('', { 'last-event-id': 'yesterday' })
    await bad.ended
    expect([bad.status, JSON.parse(bad.text()).errors]).toEqual([
      422,
      { 'header.Last-Event-ID': ['Must be the id of an event.'] },
    ])
    const oldest = (await logged(0))[3] ?? 0
    await server.store.db.deleteFrom('events').where('id', '<', oldest).execute()
    const late = await follow('', { 'last-event-id': '1' })
    await late.ended
    expect([late.status, JSON.parse(late.text()).oldest_id]).toEqual([422, oldest])
  })

  it('lets a token follow five streams, and another one once one of them has ended', async () => {
    const token = await tokenOf(1)
    const five = await Promise.all([1, 2, 3, 4, 5].map(() => follow('', {}, token)))
    expect(five.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
    const sixth = await follow('', {}, token)
    expect([sixth.status, sixth.headers['retry-after']]).toEqual([429, '15'])
    expect((await follow('', {}, await tokenOf(1))).status).toBe(200)
    five[0]?.cut()
    await five[0]?.ended
    await expect.poll(async () => (await follow('', {}, token)).status).toBe(200)
  })

  it('ends when the token is revoked, and when the user is no longer active', async () => {
    const { id, token } = await addUser()
    const [one, other] = [await follow('', {}, token), await follow('', {}, await tokenOf(id))]
    await call('DELETE', `/tokens/${token.split('|')[0]}`)
    await one.ended
    await call('PUT', `/settings/users/${id}`, { is_active: false })
    await other.ended
    expect([...one.told, ...other.told].map(({ data }) => data.entity_type)).not.toContain('nothing')
  })
})

describe('the streams of a user', () => {
  it('are at most fifty, over all tokens', async () => {
    const { id } = await addUser('global')
    for (let made = 0; made < 10; made++) {
      const token = await tokenOf(id)
      for (let each = 0; each < 5; each++) expect((await follow('', {}, token)).status).toBe(200)
    }
    const refused = await follow('', {}, await tokenOf(id))
    expect([refused.status, refused.headers['retry-after'], JSON.parse(refused.text()).code]).toEqual([
      429,
      '15',
      'rate_limited',
    ])
    readers.shift()?.cut()
    await until(async () => (await follow('', {}, await tokenOf(id))).status === 200)
  })

  it('get an event that was read once for all streams with the same view', async () => {
    const { services } = server.app
    const [one, other] = [await addUser('global'), await addUser('individual')]
    const contextOf = async ({ id }: { id: number }, query = ''): Promise<Context> => {
      const user = await signedInAs(services.store.db, id)
      return { ...systemContext(services, 'api'), user: user ?? null, query }
    }
    const [place = 0] = (await logged(0)).slice(-1)
    await follow('', {}, one.token)
    await addTag()
    const [first, again, filtered, else_] = [
      nextPart(await contextOf(one), [], place, 25),
      nextPart(await contextOf(one, `after=${place}`), [], place, 25),
      nextPart(await contextOf(one, 'entity_type=leads'), [], place, 25),
      nextPart(await contextOf(other), [], place, 25),
    ]
    expect(again).toBe(first)
    expect([filtered, else_].map((part) => part === first)).toEqual([false, false])
    await addTag()
    await until(async () => nextPart(await contextOf(one), [], place, 25) !== first)
    const { text } = await nextPart(await contextOf(one), [], place, 25)
    expect(String(text).match(/event: settings.tag.create.after/g)).toHaveLength(2)
  })
})
