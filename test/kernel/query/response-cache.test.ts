// The response cache: replies are served again without a query, and never after a change to their
// content. In other tests the server compares each cached reply with a new one; here it runs as in
// production.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openStore, type Store } from '../../../db/store.ts'
import type { Context } from '../../../src/kernel/context.ts'
import { createResponseCache, timed, type Untimed, validUntil } from '../../../src/kernel/query/response-cache.ts'
import { type Reply, startServer, type TestServer } from '../../support/app.ts'
import { given } from '../../support/given.ts'
import { statementsOf } from '../../support/statements.ts'
import { addUser } from '../../support/viewers.ts'

const day = 24 * 60 * 60 * 1000

describe('a server that is used', () => {
  let server: TestServer
  beforeEach(async () => {
    server = await startServer({ config: { env: 'production' } })
  })
  afterEach(() => server.close())

  /** The number of statements on leads during the work. */
  const asked = async (work: () => Promise<unknown>): Promise<number> =>
    (await statementsOf(work)).filter((text) => /\bleads\b/.test(text)).length

  it('answers a record and a page again without asking for them, until something is committed', async () => {
    const { id } = await given(server.admin).lead({ title: 'First' })
    for (const path of [`/leads/${id}`, '/leads', '/leads?per_page=5&fields=title']) {
      const first = await server.admin.get(path)
      expect(first.status).toBe(200)
      expect(await asked(() => server.admin.get(path))).toBe(0)
      const again = await server.admin.get(path)
      const told = ({ text, headers }: Reply) => [text, headers.etag, headers.link]
      expect(told(again)).toEqual(told(first))
      await server.admin.put(`/leads/${id}`, { title: `First ${path}` })
      expect((await server.admin.get(path)).text).not.toBe(first.text)
    }
    await server.store.db.updateTable('tags').set({ color: '#000000' }).execute()
    expect(await asked(() => server.admin.get('/leads'))).toBeGreaterThan(0)
  })

  it('says that nothing has changed to who knows it', async () => {
    const { id } = await given(server.admin).lead()
    for (const path of [`/leads/${id}`, '/leads']) {
      const etag = String((await server.admin.get(path)).headers.etag)
      const again = await server.admin.get(path, { headers: { 'if-none-match': etag } })
      expect([again.status, again.text, again.headers.etag]).toEqual([304, '', etag])
      expect((await server.admin.get(path, { headers: { 'if-none-match': '"other"' } })).status).toBe(200)
    }
    const part = await server.admin.get(`/leads/${id}?fields=title`)
    const headers = { 'if-none-match': String(part.headers.etag) }
    expect((await server.admin.get(`/leads/${id}?fields=title`, { headers })).status).toBe(200)
  })

  it('gives nobody what somebody else was given, and everybody the address they called', async () => {
    const { id } = await given(server.admin).lead({ user_id: 1 })
    const ben = await addUser(server, 'Ben', { view: 'individual' })
    expect((await server.admin.get(`/leads/${id}`)).status).toBe(200)
    expect((await ben.get(`/leads/${id}`)).status).toBe(404)
    expect((await server.admin.get('/leads')).body.meta.total).toBe(1)
    expect((await ben.get('/leads')).body.meta.total).toBe(0)
    const first = async (host: string) => (await server.admin.get('/leads', { headers: { host } })).body.links.first
    expect([await first('one.example'), await first('two.example')]).toEqual([
      expect.stringContaining('//one.example/'),
      expect.stringContaining('//two.example/'),
    ])
  })

  it('never tells of another time: how long a lead has been rotten, at any moment', async () => {
    const { id, created_at } = await given(server.admin).lead()
    const days = await server.store.db.selectFrom('lead_pipelines').select('rotten_days').executeTakeFirstOrThrow()
    const due = new Date(created_at).getTime() + days.rotten_days * day
    // Whole days with milliseconds around them, in any order.
    const moment = fc.tuple(fc.integer({ min: -days.rotten_days, max: 40 }), fc.integer({ min: -2, max: 2 }))
    await fc.assert(
      fc.asyncProperty(fc.array(moment, { minLength: 2, maxLength: 6 }), async (moments) => {
        for (const [whole, beside] of moments) {
          const at = Math.max(due + whole * day + beside, new Date(created_at).getTime())
          server.clock.set(new Date(at).toISOString())
          const shown = (await server.admin.get(`/leads/${id}`)).body.data
          const [listed] = (await server.admin.get('/leads')).body.data
          const expected = Math.max(0, Math.floor((at - due) / day))
          expect([shown.rotten_days, listed.rotten_days, shown.is_rotten]).toEqual([expected, expected, expected > 0])
        }
      }),
      { numRuns: 40 },
    )
  })

  it('is kept from those who may not ask any more, whatever it was that let them', async () => {
    await given(server.admin).lead()
    const caller = await server.as(1)
    const id = Number(caller.token?.split('|')[0])
    const status = async () => (await caller.get('/leads')).status
    const tokens = server.store.db.updateTable('tokens').where('id', '=', id)
    const users = server.store.db.updateTable('users').where('id', '=', 1)
    const [lost, found] = [
      [
        tokens.set({ abilities: '["products:read"]' }),
        tokens.set({ allowed_ips: '["192.0.2.1"]' }),
        tokens.set({ expires_at: '2020-01-01T00:00:00.000Z' }),
        tokens.set({ expires_at: 'never' }),
        users.set({ status: 0 }),
      ],
      [tokens.set({ abilities: '["*"]', allowed_ips: '[]', expires_at: null }), users.set({ status: 1 })],
    ]
    for (const [index, loss] of lost.entries()) {
      expect([await status(), await status()]).toEqual([200, 200])
      await loss.execute()
      expect(await status()).toBe(index === 0 ? 403 : 401)
      for (const back of found) await back.execute()
    }
    // By the clock alone, without a commit.
    const soon = new Date(server.clock.now().getTime() + 10_000).toISOString()
    await tokens.set({ expires_at: soon }).execute()
    expect([await status(), await status()]).toEqual([200, 200])
    server.clock.advanceMs(10_000)
    expect(await status()).toBe(401)
  })

  it('keeps none when it is told to', async () => {
    const forgetful = await startServer({ config: { env: 'production', responseCacheMb: 0 } })
    await given(forgetful.admin).lead()
    await forgetful.admin.get('/leads')
    expect(await asked(() => forgetful.admin.get('/leads'))).toBeGreaterThan(0)
    await forgetful.close()
  })
})

describe('a server with a file', () => {
  it('keeps nothing for who was asked about before their rights changed', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'accord-replies-'))
    const open = (image: Buffer): Store => {
      const file = join(folder, 'accord.db')
      writeFileSync(file, image)
      return openStore(`sqlite:${file}`)
    }
    const server = await startServer({ config: { env: 'production' }, open })
    try {
      await given(server.admin).lead({ user_id: 1 })
      const ben = await addUser(server, 'Ben', { view: 'global' })
      const sees = (view: string) => server.admin.put(`/settings/users/${ben.id}`, { view_permission: view })
      for (let round = 0; round < 40; round++) {
        expect((await sees('global')).status).toBe(200)
        // Long enough that the token's last use is stored, which the request waits for.
        server.clock.advanceMs(61_000)
        await server.admin.get('/tags')
        const asked = later(round % 10).then(() => ben.get('/leads'))
        const [answered] = await Promise.all([sees('individual'), asked])
        expect(answered.status).toBe(200)
        expect((await ben.get('/leads')).body.meta.total).toBe(0)
      }
    } finally {
      await server.close()
      rmSync(folder, { recursive: true, force: true })
    }
  })
})

async function later(turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve))
}

describe('the memory for replies', () => {
  const setting = { generation: 1, now: 1_000 }
  const contextNow = () =>
    timed(
      {
        services: { store: { commitGeneration: () => setting.generation }, config: { env: 'production' } },
      } as unknown as Untimed,
      new Date(setting.now),
      setting.generation,
    )
  const bodyOf = (letters: number) => ({ body: 'x'.repeat(letters) })

  it('answers from memory until something is committed, and never a caller who was looked up before that', async () => {
    const replies = createResponseCache(200_000)
    let made = 0
    const ask = async (ctx: Context): Promise<number> => {
      await replies.kept(ctx, 'page', async () => ({ ...bodyOf(9), number: made++ }))
      return made
    }
    const before = contextNow()
    expect([await ask(contextNow()), await ask(before)]).toEqual([1, 1])
    setting.generation++
    expect([await ask(before), await ask(contextNow()), await ask(before), await ask(contextNow())]).toEqual([
      2, 3, 4, 4,
    ])
    setting.generation--
  })

  it('holds no more than it may, and keeps what is asked for again and again', async () => {
    const replies = createResponseCache(200_000)
    let made = 0
    const ask = (key: string) => replies.kept(contextNow(), key, async () => ({ ...bodyOf(900), number: made++ }))
    for (let number = 0; number < 1_000; number++) {
      await ask(`page ${number}`)
      await ask('popular')
    }
    expect(made).toBe(1_001)
    // Of 1,000 pages of more than 1,400 bytes, at most 142 fit.
    made = 0
    for (let number = 999; number >= 0; number--) await ask(`page ${number}`)
    expect(made).toBeGreaterThanOrEqual(1_000 - 142)
    expect(made).toBeLessThan(960)
  })

  it('keeps nothing that is too large, no text, or told of the time it was made', async () => {
    const replies = createResponseCache(200_000)
    let made = 0
    const counts = async (answer: (ctx: Context) => object): Promise<number> => {
      made = 0
      for (let time = 0; time < 2; time++)
        await replies.kept(contextNow(), `key ${answer}`, async (ctx) => {
          made++
          return answer(ctx)
        })
      return made
    }
    expect(await counts(() => bodyOf(10))).toBe(1)
    expect(await counts(() => bodyOf(4_000))).toBe(2)
    expect(await counts(() => ({ body: 'é'.repeat(1_500) }))).toBe(2)
    expect(await counts(() => bodyOf(1_500))).toBe(1)
    expect(await counts(() => ({ body: Buffer.from('x') }))).toBe(2)
    expect(await counts(() => ({}))).toBe(2)
    expect(await counts((ctx) => ({ body: ctx.time.toISOString() }))).toBe(2)
    expect(await counts((ctx) => ({ body: JSON.stringify({ ...ctx, services: null }) }))).toBe(2)
    expect(await counts((ctx) => ({ body: validUntil(ctx, () => ({ value: 'a', until: 1_001 })) }))).toBe(1)
    expect(await counts((ctx) => ({ body: validUntil(ctx, () => ({ value: 'b', until: 1_000 })) }))).toBe(2)
  })

  it('neither keeps nor gives anything to who was looked up before the last commit', async () => {
    const replies = createResponseCache(200_000)
    const before = contextNow()
    const answer = (text: string) => async () => ({ body: text })
    setting.generation++
    expect((await replies.kept(before, 'key', answer('old'))).body).toBe('old')
    expect((await replies.kept(contextNow(), 'key', answer('new'))).body).toBe('new')
    expect((await replies.kept(before, 'key', answer('old'))).body).toBe('old')
  })

  it('lets go of all of it with the next commit, also of what was made meanwhile', async () => {
    const replies = createResponseCache(200_000)
    const answer = (text: string) => async () => ({ body: text })
    const ask = async (text: string) => (await replies.kept(contextNow(), 'key', answer(text))).body
    expect([await ask('a'), await ask('b')]).toEqual(['a', 'a'])
    setting.generation++
    expect(await ask('c')).toBe('c')
    setting.generation++
    const slow = replies.kept(contextNow(), 'other', async () => {
      setting.generation++
      await replies.kept(contextNow(), 'key', answer('d'))
      return { body: 'old' }
    })
    expect((await slow).body).toBe('old')
    expect((await replies.kept(contextNow(), 'other', answer('new'))).body).toBe('new')
  })
})
