// What a server keeps in memory: totals of lists, rights of callers and attributes, until the next
// commit of any process. A second
// connection simulates another process: the server detects its commits only through the database.
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { openStore, type Store } from '../../../db/store.ts'
import { startServer } from '../../support/app.ts'
import { given } from '../../support/given.ts'
import { installed } from '../../support/installed.ts'
import { statementsOf } from '../../support/statements.ts'
import { useOne } from '../../support/using.ts'
import { addUser } from '../../support/viewers.ts'

let other: Store
const here = useOne(installed)
beforeAll(() => {
  other = openStore(here.config.databaseUrl)
})
afterAll(async () => {
  await other.close()
})

const total = async (path: string): Promise<number> => (await here.server.admin.get(path)).body.meta.total

describe('what a server keeps in memory', () => {
  it('is dropped when another process commits: totals of lists, filtered or not', async () => {
    const make = given(here.server.admin)
    for (let count = 0; count < 3; count++) await make.lead({ title: `Kept ${count}` })
    expect([await total('/leads'), await total('/leads'), await total('/leads?title=kept 1')]).toEqual([3, 3, 1])
    await other.db.deleteFrom('leads').where('title', '=', 'Kept 1').execute()
    expect([await total('/leads'), await total('/leads?title=kept 1')]).toEqual([2, 0])
  })

  it('is kept apart for tokens of one user, by what each may do', async () => {
    const make = given(here.server.admin)
    const person = await make.person({ name: 'Zoe', job_title: 'Engineer' })
    const { id } = await make.lead({ person_id: person.id })
    const [all, leadsOnly] = [await here.server.as(1), await here.server.as(1, ['leads:*'])]
    for (let round = 0; round < 3; round++) {
      const title = `Round ${round}`
      expect((await all.put(`/leads/${id}`, { title })).body.data.title).toBe(title)
      expect((await all.get(`/leads/${id}?include=person`)).body.data.person).toMatchObject({ job_title: 'Engineer' })
      expect((await leadsOnly.get(`/leads/${id}?include=person`)).body.data.person).not.toHaveProperty('job_title')
      expect((await leadsOnly.put(`/leads/${id}`, { title: 'Other' })).status).toBe(200)
    }
  })

  it('does not hold what another process has rolled back', async () => {
    const before = await total('/leads')
    const failing = other.transaction(async (db) => {
      await db.deleteFrom('leads').execute()
      throw new Error('no')
    })
    await expect(failing).rejects.toThrow('no')
    expect(await total('/leads')).toBe(before)
  })

  it('is never what a caller could do before: role, sight, status and token count as they are now', async () => {
    const make = given(here.server.admin)
    const ben = await addUser(here.server, 'Ben', { view: 'global' })
    const { id } = await make.lead({ user_id: 1 })
    const status = async () => (await ben.get(`/leads/${id}`)).status
    expect([await status(), await status()]).toEqual([200, 200])
    const set = (changes: object) => other.db.updateTable('users').set(changes).where('id', '=', ben.id).execute()
    await set({ view_permission: 'individual' })
    expect(await status()).toBe(404)
    await set({ view_permission: 'global' })
    expect(await status()).toBe(200)
    const mine = other.db.selectFrom('users').select('role_id').where('id', '=', ben.id)
    const roles = other.db.updateTable('roles').where('id', '=', mine)
    await roles.set({ permission_type: 'custom', permissions: '["tags"]' }).execute()
    expect(await status()).toBe(403)
    await roles.set({ permission_type: 'all', permissions: null }).execute()
    expect(await status()).toBe(200)
    await set({ is_active: 0 })
    expect(await status()).toBe(401)
    await set({ is_active: 1 })
    expect(await status()).toBe(200)
    await other.db.deleteFrom('tokens').where('user_id', '=', ben.id).execute()
    expect(await status()).toBe(401)
  })

  it('is never an attribute that is gone, or that was changed', async () => {
    const about = { entity_type: 'leads', code: 'kept', name: 'Kept', type: 'text' }
    const { body } = await here.server.admin.post('/settings/attributes', about)
    const { id } = await given(here.server.admin).lead()
    const shown = async () => Object.keys((await here.server.admin.get(`/leads/${id}`)).body.data.custom_attributes)
    expect([await shown(), await shown()]).toEqual([['kept'], ['kept']])
    await other.db.deleteFrom('attributes').where('id', '=', body.data.id).execute()
    expect(await shown()).toEqual([])
  })
})

describe('the attributes', () => {
  it('are read anew by no later write, even if only writes have ever needed them', async () => {
    const fresh = await startServer()
    try {
      const make = given(fresh.admin)
      const read = async () =>
        (await statementsOf(() => make.lead())).filter((text) => /attribute_options/.test(text)).length
      expect(await read()).toBeGreaterThan(0)
      expect([await read(), await read()]).toEqual([0, 0])
    } finally {
      await fresh.close()
    }
  })
})

interface Page {
  data: { id: number }[]
  meta: { next_cursor: string | null }
}

describe('a walk by cursor', () => {
  it('comes to everyone who is still there when others are deleted while a page is read', async () => {
    const make = given(here.server.admin)
    for (let count = 0; count < 12; count++) await make.person({ name: `Walk ${count % 4}` })
    const ids = (await other.db.selectFrom('persons').select('id').where('name', 'like', 'Walk%').execute()).map(
      (row) => row.id,
    )
    const { db } = here.store
    const execute = db.executeQuery.bind(db)
    const gone: number[] = []
    vi.spyOn(db, 'executeQuery').mockImplementation(async (query) => {
      const result = await execute(query)
      if (!/cursor_0/.test((query as { sql: string }).sql) || gone.length > 0) return result as never
      gone.push(...(result.rows as { id: number }[]).slice(0, 2).map(({ id }) => id))
      await other.db.deleteFrom('persons').where('id', 'in', gone).execute()
      return result as never
    })
    const seen: number[] = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const path: string = `/contacts/persons?sort=name&per_page=4&cursor=${encodeURIComponent(cursor)}`
      const { body }: { body: Page } = await here.server.admin.get(path)
      seen.push(...body.data.map(({ id }) => id))
      cursor = body.meta.next_cursor
    }
    expect(gone).toHaveLength(2)
    expect(ids.filter((id) => !seen.includes(id))).toEqual(gone)
    expect(new Set(seen).size).toBe(seen.length)
  })
})
