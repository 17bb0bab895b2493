// Idempotency-Key: a request is executed only once, even if the server dies between the commit and
// the reply. A key applies only to the token that sent it.
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { UnconfirmedCommitError } from '../../../db/sqlite/group-commit/wal-sync.ts'
import { type Context, systemContext } from '../../../src/kernel/context.ts'
import { inMass } from '../../../src/kernel/resource/mass.ts'
import { nameOf, self } from '../../../src/kernel/runtime/process-identity.ts'
import { once } from '../../../src/kernel/write/idempotency.ts'
import { tags } from '../../../src/resources/tags/resource.ts'
import { start } from '../../support/app.ts'
import { useNewServers } from '../../support/using.ts'

const server = useNewServers()

const otherUser = {
  ...{ name: 'Other', name_key: 'other', email: 'other@example.com', email_key: 'other@example.com' },
  ...{ is_active: 1, view_permission: 'global' as const, role_id: 1, created_at: start, updated_at: start },
}
const headers = { 'idempotency-key': 'once' }
const gone = nameOf({ ...self, pid: 2 ** 22 + 1, began: '' }, 'gone')
const callingToken = async () => {
  const { id } = await server.store.db.selectFrom('tokens').select('id').executeTakeFirstOrThrow()
  return { id, abilities: ['*'], allowedIps: [], expiresAt: null }
}
const create = (name = 'Trade fair') => server.admin.post('/sources', { name }, { headers })
const count = async (): Promise<number> => (await server.admin.get('/sources')).body.meta.total

describe('Idempotency-Key', () => {
  it('keeps 10,000 answers of a user and deletes the oldest, but nothing unfinished or of others', async () => {
    const { db } = server.store
    const { id: token_id } = await callingToken()
    const { id: user_id } = await db.insertInto('users').values(otherUser).returning('id').executeTakeFirstOrThrow()
    await server.as(user_id)
    const other = await db.selectFrom('tokens').select('id').where('user_id', '=', user_id).executeTakeFirstOrThrow()
    const row = (token_id: number, key: string, state: 'committed' | 'completed') => ({
      ...{ token_id, key, state, request_hash: 'x', status: 201, headers: '{}', body: 'x', held_by: 'x' },
      ...{ created_at: start, expires_at: '2026-03-02T09:30:00.000Z' },
    })
    const rows = [row(other.id, 'other', 'completed'), row(token_id, 'unfinished', 'committed')]
    for (let at = 0; at < 10_050; at++) rows.push(row(token_id, `old ${at}`, 'completed'))
    for (let at = 0; at < rows.length; at += 500)
      await db
        .insertInto('idempotency_keys')
        .values(rows.slice(at, at + 500))
        .execute()
    for (let at = 0; at < 100; at++)
      await server.admin.post('/sources', { name: `New ${at}` }, { headers: { 'idempotency-key': `new ${at}` } })
    const left = await db.selectFrom('idempotency_keys').select(['key', 'token_id']).orderBy('id').execute()
    const keys = left.map(({ key }) => key)
    expect(keys.length).toBeLessThanOrEqual(2 + 10_000 + 100)
    expect([keys.includes('other'), keys.includes('unfinished'), keys.includes('old 0')]).toEqual([true, true, false])
    expect([keys.includes('old 10049'), keys.includes('new 0')]).toEqual([true, true])
  })

  it('answers 409, and does not work again, when an earlier version lost the answer', async () => {
    await create()
    await server.store.db
      .updateTable('idempotency_keys')
      .set({ state: 'committed', status: null, headers: null, body: null, held_by: gone })
      .execute()
    const { status, body, headers } = await create()
    expect([status, body.code, headers['retry-after']]).toEqual([409, 'idempotency_in_flight', '1'])
    expect(await count()).toBe(6)
  })

  it('does nothing when the answer cannot be stored, and leaves the key free', async () => {
    const { encryption } = server.app.services
    const { encrypt: close } = encryption
    encryption.encrypt = () => {
      throw new Error('the power is gone')
    }
    expect((await create()).status).toBe(500)
    encryption.encrypt = close
    expect(await count()).toBe(5)
    expect([(await create()).status, await count()]).toEqual([201, 6])
  })

  it('gives an answer again once it is on the disk, which the first request may still wait for', async () => {
    await create()
    const confirmed = vi
      .spyOn(server.store, 'whenDurable')
      .mockImplementation(() => Promise.reject(new UnconfirmedCommitError('The disk did not confirm it.')))
    expect((await create()).status).toBe(503)
    confirmed.mockRestore()
    const { status, headers } = await create()
    expect([status, headers['idempotency-replayed'], await count()]).toEqual([201, 'true', 6])
  })

  it('leaves the key free when the disk does not confirm that it was taken', async () => {
    const { db } = server.store
    const insertInto = db.insertInto.bind(db) as (table: string) => object
    const unconfirmed = (query: object): object =>
      new Proxy(query, {
        get: (target: any, name) =>
          name === 'executeTakeFirst'
            ? async () => {
                await target.executeTakeFirst()
                throw new UnconfirmedCommitError('The disk did not confirm it.')
              }
            : (...given: unknown[]) => unconfirmed(target[name](...given)),
      })
    const disk = vi
      .spyOn(db, 'insertInto')
      .mockImplementation(((table: string) =>
        table === 'idempotency_keys' ? unconfirmed(insertInto(table)) : insertInto(table)) as never)
    expect((await create()).status).toBe(503)
    disk.mockRestore()
    expect([(await create()).status, await count()]).toEqual([201, 6])
  })

  describe('of a mass operation', () => {
    let ids: number[]
    beforeEach(async () => {
      ids = []
      for (const name of ['a', 'b', 'c', 'd']) ids.push((await server.admin.post('/tags', { name })).body.data.id)
      server.events()
    })
    const destroy = (given = ids) =>
      server.admin.post('/tags/mass-delete', { ids: given }, { headers: { 'idempotency-key': 'many' } })

    it('goes on behind the records that are done, and answers all of them', async () => {
      const { encryption } = server.app.services
      const { encrypt: close } = encryption
      encryption.encrypt = (text) => {
        if ((JSON.parse(text).processed ?? []).length > 2) throw new Error('the power is gone')
        return close(text)
      }
      expect((await destroy()).status).toBe(500)
      encryption.encrypt = close
      expect((await server.admin.get('/tags')).body.meta.total).toBe(2)
      const keys = await server.store.db.selectFrom('idempotency_keys').select(['state', 'body']).execute()
      expect(keys).toEqual([{ state: 'committed', body: expect.not.stringContaining('processed') }])
      expect((await destroy([1])).body.code).toBe('idempotency_key_reused')
      const { status, body, headers } = await destroy()
      expect([status, body.data, headers['idempotency-replayed']]).toEqual([
        200,
        { processed: ids, failed: [] },
        undefined,
      ])
      expect(server.events().filter((name) => name === 'settings.tag.delete.after')).toHaveLength(4)
      expect((await destroy()).headers['idempotency-replayed']).toBe('true')
    })

    it('ends with 409, and changes nothing more, once another has taken the key over', async () => {
      const ctx = { ...systemContext(server.app.services, 'api'), token: await callingToken() }
      const each = async (inner: Context, id: number): Promise<void> => {
        if (id === ids[1]) await inner.db.updateTable('idempotency_keys').set({ held_by: 'somebody else' }).execute()
        await tags.remove(inner, id)
      }
      const late = once(
        ctx,
        'late',
        {},
        {
          isInSteps: true,
          handle: (inner) => inMass(inner, { noun: { one: 'tag', many: 'tags' }, verb: 'deleted', ids, each }),
          render: () => ({ status: 200, headers: {}, body: '{}' }),
        },
      )
      await expect(late).rejects.toMatchObject({ code: 'idempotency_in_flight' })
      expect((await server.admin.get('/tags')).body.meta.total).toBe(3)
    })
  })

  it('answers 409 while the first request is on its way', async () => {
    await create()
    await server.store.db
      .updateTable('idempotency_keys')
      .set({ state: 'in_flight', status: null, headers: null, body: null })
      .execute()
    expect((await create()).body.code).toBe('idempotency_in_flight')
  })

  describe('whose first request has not come to its end', () => {
    const leave = (changes: { held_by?: string | null; created_at?: string }) =>
      server.store.db
        .updateTable('idempotency_keys')
        .set({ state: 'in_flight', status: null, headers: null, body: null, ...changes })
        .execute()
    const forget = () => server.store.db.deleteFrom('lead_sources').where('name', '=', 'Trade fair').execute()

    it('is free at once when the process of that request is gone', async () => {
      await create()
      await forget()
      await leave({ held_by: gone })
      expect([(await create()).status, await count()]).toEqual([201, 6])
      expect((await create()).headers['idempotency-replayed']).toBe('true')
    })

    it('is free after a minute when nothing is known of that process', async () => {
      await create()
      await forget()
      await leave({ held_by: 'elsewhere:place:1::x' })
      expect((await create()).status).toBe(409)
      server.clock.advanceMs(60_001)
      expect([(await create()).status, await count()]).toEqual([201, 6])
    })

    it('does nothing any more once another has taken the key over', async () => {
      const ctx = { ...systemContext(server.app.services, 'api'), token: await callingToken() }
      const late = once(
        ctx,
        'late',
        {},
        {
          isInSteps: false,
          handle: async ({ db }) => {
            await db.updateTable('idempotency_keys').set({ held_by: 'somebody else' }).execute()
            const late = { name: 'Late', name_key: 'late', created_at: start, updated_at: start }
            await db.insertInto('lead_sources').values(late).execute()
          },
          render: () => ({ status: 201, headers: {}, body: '{}' }),
        },
      )
      await expect(late).rejects.toMatchObject({ code: 'idempotency_in_flight' })
      expect(await count()).toBe(5)
    })
  })

  it('does the work once for two requests at the same time', async () => {
    const answers = await Promise.all([create(), create()])
    expect(answers.map(({ status }) => status).every((status) => [201, 409].includes(status))).toBe(true)
    expect(answers.some(({ status }) => status === 201)).toBe(true)
    expect(await count()).toBe(6)
  })

  it('is free again after a refusal, by the body or by a rule', async () => {
    expect((await create('Web')).status).toBe(409)
    expect((await create('')).status).toBe(422)
    expect((await create()).status).toBe(201)
  })

  it('is forgotten after a day', async () => {
    await create()
    server.clock.advanceMs(24 * 60 * 60 * 1000 + 1)
    const { status, headers } = await create('Another fair')
    expect([status, headers['idempotency-replayed']]).toEqual([201, undefined])
  })

  it('belongs to one token: the same key of another one is another key', async () => {
    await create()
    const other = await server.as(1)
    const { status, headers: received } = await other.post('/sources', { name: 'Trade fair 2' }, { headers })
    expect([status, received['idempotency-replayed'], await count()]).toEqual([201, undefined, 7])
  })

  it('belongs to one operation and path', async () => {
    await create()
    const { status, body } = await server.admin.post('/types', { name: 'Trade fair' }, { headers })
    expect([status, body.code]).toEqual([422, 'idempotency_key_reused'])
  })

  it('keeps the answer unreadable in the database', async () => {
    await create('Very secret fair')
    const rows = await server.store.db.selectFrom('idempotency_keys').selectAll().execute()
    expect(JSON.stringify(rows)).not.toContain('Very secret')
  })
})
