// The common parts of replies: statuses, headers, conditional requests and idempotency. A body from
// GET can be sent with PUT.
import { beforeEach, describe, expect, it } from 'vitest'
import { unique } from '../support/given.ts'
import { bodySchema, creatorOfUpsert, fact, facts, follow, takesHeader, takesLines } from '../support/schema.ts'
import { type Answer, change, changesNothing, type Request, request, send } from './support.ts'
import { useWorld } from './use-world.ts'

const world = useWorld()
beforeEach(() => world.server.rewind())

const handled = facts.filter(([, { servedBy }]) => servedBy === 'handler').map(([id]) => id)
const gets = facts.filter(([, { method }]) => method === 'get').map(([id]) => id)
const creates = handled.filter((id) => fact(id).location)
const updates = handled.filter((id) => id.startsWith('update') && takesHeader(id, 'If-Match'))
const lists = handled.filter((id) => id.startsWith('list') && 'page' in fact(id).query)
const conditional = gets.filter((id) => handled.includes(id) && takesHeader(id, 'If-None-Match'))
// An upsert of a new record answers 412 to any If-Match.
const guarded = handled.filter((id) => takesHeader(id, 'If-Match') && creatorOfUpsert(id) === undefined)
// Not `logout`, because replies are stored for the token, which it deletes.
const idempotent = handled.filter((id) => takesHeader(id, 'Idempotency-Key') && id !== 'logout')
const showOf = (id: string): string | undefined =>
  handled.find((each) => fact(each).method === 'get' && fact(each).path === fact(id).path)

const ask = (id: string, headers: Record<string, string> = {}, changes: Partial<Request> = {}): Promise<Answer> =>
  send(world, id, { ...request(world, id), ...changes, headers })

describe.each(handled)('%s', (id) => {
  it('echoes the request id, or gives one of its own to a request that has none it can echo', async () => {
    const { headers, body } = await ask(id, { 'x-request-id': 'walk.1-2_3' })
    expect(headers['x-request-id']).toBe('walk.1-2_3')
    expect(headers['x-content-type-options']).toBe('nosniff')
    const [type] = String(headers['content-type']).split(';')
    const { produces } = fact(id)
    expect([type, '*/*'].some((each) => produces.some((known) => known === each))).toBe(produces.length > 0)
    if (type === 'application/json') expect(typeof body).toBe('object')
    await world.server.rewind()
    expect((await ask(id, { 'x-request-id': 'not this one!' })).headers['x-request-id']).toMatch(/^[\w.-]{8,}$/)
  })
})

describe.each(creates)('%s', (id) => {
  it('answers 201 and says where the record is', async () => {
    const { status, headers, body } = await ask(id)
    expect(status).toBe(201)
    const { pathname } = new URL(headers.location ?? '')
    expect(pathname).toBe(`${fact(id).path}/${body.data.id}`)
    const show =
      handled.find((each) => fact(each).method === 'get' && fact(each).path === `${fact(id).path}/{id}`) ?? ''
    const shown = await send(world, show, { method: 'GET', url: pathname })
    expect(shown.status).toBe(200)
    expect(body.data).toMatchObject(shown.body.data)
    if ('version' in body.data)
      expect([headers.etag, shown.headers.etag]).toEqual(['"1"', expect.stringMatching(/^"1-[\w-]{22}"$/)])
    expect(body.message).toMatch(/ created\./)
  })
})

describe.each(idempotent)('%s', (id) => {
  const { status } = fact(id)

  it('gives the first answer again to the same Idempotency-Key, and does the work once', async () => {
    const wanted = request(world, id)
    const first = await send(world, id, { ...wanted, headers: { 'idempotency-key': 'walk' } })
    expect([first.status, first.headers['idempotency-replayed']]).toEqual([status, undefined])
    world.server.events()
    const again = await send(world, id, { ...wanted, headers: { 'idempotency-key': 'walk' } })
    expect([again.status, again.text, again.headers['idempotency-replayed']]).toEqual([
      first.status,
      first.text,
      'true',
    ])
    expect([again.headers.location, again.headers.etag]).toEqual([first.headers.location, first.headers.etag])
    expect(world.server.events()).toEqual([])
  })
})

describe.each(idempotent.filter((id) => bodySchema(id) !== undefined && !takesLines(id)))('%s', (id) => {
  const { status } = fact(id)

  it('answers 422 to the same Idempotency-Key with another body', async () => {
    const wanted = request(world, id)
    await send(world, id, { ...wanted, headers: { 'idempotency-key': 'walk' } })
    const [name = ''] = Object.keys(wanted.body ?? {})
    const value = wanted.body?.[name]
    const other = Array.isArray(value)
      ? [...value, 999_999]
      : typeof value === 'number'
        ? value + 1
        : `other${String(value).includes('@') ? `${unique()}@example.com` : ` ${unique()}`}`
    const choices = (follow(bodySchema(id)?.properties?.[name]).enum ?? []) as unknown[]
    const choice = choices.find((each) => each !== value)
    const findings = await changesNothing(world, async () => {
      const body = typeof value === 'boolean' ? { [name]: !value } : { ...wanted.body, [name]: choice ?? other }
      const refused = await send(world, id, { ...wanted, body, headers: { 'idempotency-key': 'walk' } })
      expect([refused.status, refused.body.code]).toEqual([422, 'idempotency_key_reused'])
    })
    expect(findings).toEqual([])
  })

  it('leaves the key free after a refusal', async () => {
    const headers = { 'idempotency-key': 'walk' }
    const findings = await changesNothing(world, async () => {
      expect((await ask(id, headers, { body: { nope: 1 } })).status).toBe(422)
    })
    expect(findings).toEqual([])
    expect((await ask(id, headers)).status).toBe(status)
  })
})

describe.each(updates.filter((id) => showOf(id) !== undefined))('%s', (id) => {
  it('takes back what GET answers, and calls it no change', async () => {
    const shown = await ask(showOf(id) ?? '')
    const before = await world.server.store.db.selectFrom('events').select('id').execute()
    world.server.events()
    // A list is sent in the only list property of the body.
    const { data } = shown.body
    const list = Object.entries(bodySchema(id)?.properties ?? {}).find(([, each]) => follow(each).items)?.[0] ?? ''
    const sent = Array.isArray(data) ? { [list]: data } : data
    // A list has no version, only its record has one.
    const put = await ask(id, Array.isArray(data) ? {} : { 'if-match': shown.headers.etag ?? '"1"' }, { body: sent })
    expect(put.status === 200 ? 200 : put.text).toBe(200)
    expect(put.body.data).toEqual(shown.body.data)
    const fired = world.server.seen.splice(0)
    expect(fired.map(({ name }) => name)).toEqual([`${fact(id).events[0]}.before`, `${fact(id).events[0]}.after`])
    expect(fired.at(-1)?.changed).toEqual([])
    expect(await world.server.store.db.selectFrom('events').select('id').execute()).toEqual(before)
  })

  it('adds one to the version when something changes', async () => {
    const before = await ask(showOf(id) ?? '')
    const { body, headers } = await change(world, id)
    if (!('version' in before.body.data)) return
    expect(body.data.version).toBe(before.body.data.version + 1)
    expect(headers.etag).toBe(`"${body.data.version}"`)
    const { created_at: born } = before.body.data
    expect(body.data.created_at).toBe(born)
  })
})

describe.each(guarded)('%s', (id) => {
  it('answers 412 to an If-Match that is stale, and changes nothing', async () => {
    for (const etag of ['"999"', 'W/"999"', '"0", "998"']) {
      const findings = await changesNothing(world, async () => {
        const { status, body } = await ask(id, { 'if-match': etag })
        expect.soft([etag, status, body.code]).toEqual([etag, 412, 'version_mismatch'])
      })
      expect.soft(findings).toEqual([])
    }
  })

  it('takes an If-Match of * ', async () => {
    expect((await ask(id, { 'if-match': '*' })).status).toBe(fact(id).status)
  })
})

describe.each(conditional)('%s', (id) => {
  it('answers 304 without a body to the ETag it gave, and 200 to another', async () => {
    const first = await ask(id)
    expect(first.headers.etag).toMatch(/^"[^"]+"$/)
    for (const known of [first.headers.etag ?? '', `"other", ${first.headers.etag}`, '*']) {
      const { status, text, headers } = await ask(id, { 'if-none-match': known })
      expect.soft([status, text, headers.etag]).toEqual([304, '', first.headers.etag])
    }
    expect((await ask(id, { 'if-none-match': '"other"' })).status).toBe(200)
  })
})

describe.each(lists)('%s', (id) => {
  it('answers the pagination envelope, with the same links in the body and in the Link header', async () => {
    const { body, headers } = await ask(id, {}, { url: `${request(world, id).url}?per_page=1` })
    expect(Object.keys(body).sort()).toEqual(['data', 'links', 'meta'])
    expect(body.meta).toMatchObject({ current_page: 1, per_page: 1, last_page: Math.max(1, body.meta.total) })
    expect(body.data.length).toBe(Math.min(1, body.meta.total))
    const inHeader = [...(headers.link ?? '').matchAll(/<([^>]+)>; rel="(\w+)"/g)].map(([, url, rel]) => [rel, url])
    const given = Object.entries(body.links as Record<string, string | null>).filter(([, url]) => url !== null)
    expect(Object.fromEntries(inHeader)).toEqual(Object.fromEntries(given))
    for (const [, url] of given) expect(new URL(url ?? '').searchParams.get('per_page')).toBe('1')
  })

  it('answers an empty page, not an error, beyond the last one', async () => {
    const { status, body } = await ask(id, {}, { url: `${request(world, id).url}?page=4000` })
    expect([status, body.data, body.meta.from, body.meta.to, body.links.next]).toEqual([200, [], null, null, null])
  })

  it('leaves the total out with count=none', async () => {
    const { body } = await ask(id, {}, { url: `${request(world, id).url}?count=none` })
    expect([body.meta.total, body.meta.last_page, body.links.last]).toEqual([null, null, null])
  })
})

describe.each(gets)('%s', (id) => {
  it('answers HEAD as GET, without the body, and does not mind a trailing slash', async () => {
    const { url } = request(world, id)
    const get = await send(world, id, { method: 'GET', url, headers: { 'x-request-id': 'walk' } })
    const head = await send(world, id, { method: 'HEAD', url, headers: { 'x-request-id': 'walk' } })
    const slash = await send(world, id, { method: 'GET', url: `${url}/`, headers: { 'x-request-id': 'walk' } })
    expect([head.status, head.text]).toEqual([get.status, ''])
    // The documentation page uses relative paths, so its text may differ.
    expect(slash.status).toBe(get.status)
    // Metrics count their own requests, so their text differs each time.
    const isSteady = fact(id).servedBy === 'handler' && !fact(id).produces.some((type) => type === 'text/plain')
    if (isSteady) expect(slash.text).toBe(get.text)
    const plain = ({
      date: _date,
      'content-length': _length,
      'transfer-encoding': _chunks,
      'set-cookie': _cookies,
      ...rest
    }: Record<string, string>) => rest
    expect(plain(head.headers)).toEqual(plain(get.headers))
    if (isSteady && get.headers['content-length'] !== undefined)
      expect(head.headers['content-length']).toBe(get.headers['content-length'])
  })
})

describe.each([...new Map(facts.map(([id, { path }]) => [path, id]))])('%s', (path, id) => {
  it('answers OPTIONS with 204 and the methods it knows, to anybody', async () => {
    const known = facts.filter(([, each]) => each.path === path).map(([, { method }]) => method.toUpperCase())
    const { status, headers, text } = await send(world, id, {
      method: 'OPTIONS',
      url: request(world, id).url,
      token: null,
    })
    expect([status, text]).toEqual([204, ''])
    expect(headers.allow?.split(', ').sort()).toEqual(
      [...known, ...(known.includes('GET') ? ['HEAD'] : []), 'OPTIONS'].sort(),
    )
  })
})

describe.each(handled.filter((id) => fact(id).method === 'delete' && /\/\{id\}$/.test(fact(id).path)))('%s', (id) => {
  it('deletes once: afterwards the record is not there to show, change or delete', async () => {
    const wanted = request(world, id)
    expect((await send(world, id, wanted)).status).toBe(200)
    for (const other of handled.filter((each) => fact(each).path === fact(id).path)) {
      const { status } = await send(world, other, { ...request(world, other), url: wanted.url })
      expect.soft([other, status]).toEqual([other, 404])
    }
  })
})

describe('an unknown path', () => {
  it('answers 404 with a problem', async () => {
    const { status, body } = await world.server.admin.get('/nothing-here')
    expect([status, body.code]).toEqual([404, 'not_found'])
  })
})
