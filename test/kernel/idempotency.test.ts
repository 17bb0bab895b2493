// A key means: done once. Also when the server dies between the work and its answer, and only for the token that sent it.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { NotOnDisk } from '../../db/dialects/sqlite-sync.ts'
import { systemContext } from '../../src/kernel/context.ts'
import { once } from '../../src/kernel/idempotency.ts'
import { nameOf, self } from '../../src/kernel/owners.ts'
import { transaction } from '../../src/kernel/write.ts'
import { start, startServer, type TestServer } from '../support/app.ts'

let server: TestServer
beforeEach(async () => {
  server = await startServer()
})
afterEach(() => server.close())

const headers = { 'idempotency-key': 'once' }
const create = (name = 'Trade fair') => server.admin.post('/sources', { name }, { headers })
const count = async (): Promise<number> => (await server.admin.get('/sources')).body.meta.total

describe('Idempotency-Key', () => {
  it('answers 409 when the work was committed and its answer was lost, and does not work again', async () => {
    await create()
    await server.store.db
      .updateTable('idempotency_keys')
      .set({ state: 'committed', status: null, headers: null, body: null })
      .execute()
    const { status, body, headers } = await create()
    expect([status, body.code, headers['retry-after']]).toEqual([409, 'idempotency_in_flight', '1'])
    expect(await count()).toBe(6)
  })

  it('does nothing when the answer cannot be stored, and leaves the key free', async () => {
    const { seal } = server.app.services
    const { close } = seal
    seal.close = () => {
      throw new Error('the power is gone')
    }
    expect((await create()).status).toBe(500)
    seal.close = close
    expect(await count()).toBe(5)
    expect([(await create()).status, await count()]).toEqual([201, 6])
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
                throw new NotOnDisk('The disk did not confirm it.')
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

  it('asks nobody to wait for an answer that will never come, and does not work again', async () => {
    await create()
    const lose = (changes: { held_by?: string }) =>
      server.store.db
        .updateTable('idempotency_keys')
        .set({ state: 'committed', status: null, headers: null, body: null, ...changes })
        .execute()
    const expectLost = async () => {
      const { status, body, headers } = await create()
      expect([status, body.code, headers['retry-after']]).toEqual([409, 'idempotency_in_flight', undefined])
      expect(body.detail).toMatch(/died during the request with this Idempotency-Key\. Look at the records/)
      expect((await create('Another fair')).body.code).toBe('idempotency_key_reused')
    }
    await lose({ held_by: nameOf({ ...self, pid: 2 ** 22 + 1, began: '' }, 'gone') })
    await expectLost()
    await lose({ held_by: 'elsewhere:place:1::x' })
    expect((await create()).headers['retry-after']).toBe('1')
    server.clock.advanceMs(60_001)
    await expectLost()
    expect(await count()).toBe(6)
  })

  it('names what was changed when the server died between two transactions of a request', async () => {
    const made = await create()
    const { id } = made.body.data
    const tags = [1, 2].map(async (n) => (await server.admin.post('/tags', { name: `Tag ${n}` })).body.data.id)
    const indices = await Promise.all(tags)
    const destroy = () =>
      server.admin.post('/tags/mass-destroy', { indices }, { headers: { 'idempotency-key': 'many' } })
    const first = await destroy()
    expect([first.status, id > 0]).toEqual([200, true])
    await server.store.db
      .updateTable('idempotency_keys')
      .set({
        state: 'committed',
        status: null,
        body: null,
        headers: JSON.stringify({ 'x-request-id': first.headers['x-request-id'] }),
        held_by: nameOf({ ...self, pid: 2 ** 22 + 1, began: '' }, 'gone'),
      })
      .where('key', '=', 'many')
      .execute()
    const { status, body } = await destroy()
    expect([status, body.code]).toEqual([409, 'idempotency_in_flight'])
    expect(body.detail).toContain(
      `It changed: ${indices.map((each) => `tags ${each} (settings.tag.delete.after)`).join(', ')}.`,
    )
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
      await leave({ held_by: nameOf({ ...self, pid: 2 ** 22 + 1, began: '' }, 'gone') })
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
      const ctx = {
        ...systemContext(server.app.services, 'api'),
        token: { id: 1, abilities: ['*'], allowedIps: [], expiresAt: null },
      }
      const late = once(ctx, 'late', {}, async (inner) => {
        await inner.db.updateTable('idempotency_keys').set({ held_by: 'somebody else' }).execute()
        await transaction(inner, ({ db }) =>
          db
            .insertInto('lead_sources')
            .values({ name: 'Late', name_key: 'late', created_at: start, updated_at: start })
            .execute(),
        )
        return { status: 201, headers: {}, body: '{}' }
      })
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
