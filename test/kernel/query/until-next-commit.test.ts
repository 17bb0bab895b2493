// In production the server caches totals, tokens and statements. A reply still never shows data of
// another caller, outdated data, or data that the caller may no longer see.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { startServer } from '../../support/app.ts'
import { isPostgres, openAt } from '../../support/engine.ts'
import { given } from '../../support/given.ts'
import { useNewServers } from '../../support/using.ts'
import { addUser } from '../../support/viewers.ts'

const day = 24 * 60 * 60 * 1000

describe('a read', () => {
  const server = useNewServers({ config: { env: 'production' } })

  it('answers 304 to a caller that has the record or the page', async () => {
    const { id } = await given(server.admin).lead()
    for (const path of [`/leads/${id}`, '/leads']) {
      const etag = String((await server.admin.get(path)).headers.etag)
      const again = await server.admin.get(path, { headers: { 'if-none-match': etag } })
      expect([again.status, again.text, again.headers.etag]).toEqual([304, '', etag])
      expect((await server.admin.get(path, { headers: { 'if-none-match': '"other"' } })).status).toBe(200)
    }
    const part = await server.admin.get(`/leads/${id}?fields=title`)
    const headers = { 'if-none-match': String(part.headers.etag) }
    const statuses = ['?fields=title', '?fields=id', ''].map(
      async (query) => (await server.admin.get(`/leads/${id}${query}`, { headers })).status,
    )
    expect(await Promise.all(statuses)).toEqual([304, 200, 200])
  })

  it('shows each caller their own view, with links to the host they called', async () => {
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

  it('shows how long a lead has been rotten at any moment', async () => {
    const { id, created_at } = await given(server.admin).lead()
    const days = await server.store.db.selectFrom('lead_pipelines').select('rotten_days').executeTakeFirstOrThrow()
    const due = new Date(created_at).getTime() + days.rotten_days * day
    // Moments around whole days, in any order.
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

  it('refuses a caller at once when a right is gone or a token expires', async () => {
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
        // PostgreSQL refuses such a time.
        ...(isPostgres ? [] : [tokens.set({ expires_at: 'never' })]),
        users.set({ is_active: 0 }),
      ],
      [tokens.set({ abilities: '["*"]', allowed_ips: '[]', expires_at: null }), users.set({ is_active: 1 })],
    ]
    for (const [index, loss] of lost.entries()) {
      expect([await status(), await status()]).toEqual([200, 200])
      await loss.execute()
      expect(await status()).toBe(index === 0 ? 403 : 401)
      for (const back of found) await back.execute()
    }
    // The token expires by the clock alone, without a commit.
    const soon = new Date(server.clock.now().getTime() + 10_000).toISOString()
    await tokens.set({ expires_at: soon }).execute()
    expect([await status(), await status()]).toEqual([200, 200])
    server.clock.advanceMs(10_000)
    expect(await status()).toBe(401)
  })
})

describe('a read beside a change of rights', () => {
  it('shows nothing to a caller whose rights were read before they changed', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'accord-replies-'))
    const open = openAt(join(folder, 'accord.db'))
    const server = await startServer({ config: { env: 'production' }, ...(!isPostgres && { open }) })
    try {
      await given(server.admin).lead({ user_id: 1 })
      const ben = await addUser(server, 'Ben', { view: 'global' })
      const sees = (view: string) => server.admin.put(`/settings/users/${ben.id}`, { view_permission: view })
      for (let round = 0; round < 40; round++) {
        expect((await sees('global')).status).toBe(200)
        // After a minute, a request also stores the last use of the token.
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
