// A full disk: writes return 503 and change nothing, reads work, and writes work again
// when there is space.
import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { openImage } from '../../../db/store.ts'
import { startServer } from '../../support/app.ts'
import { file, form } from '../../support/form.ts'
import { useNewServers } from '../../support/using.ts'

const server = useNewServers()

const setReadOnly = (isOn: boolean) => sql`pragma query_only = ${sql.lit(isOn ? 1 : 0)}`.execute(server.store.db)

describe('a database that cannot be written', () => {
  it('refuses writes with 503 and Retry-After, and goes on by itself', async () => {
    await setReadOnly(true)
    const { status, body, headers } = await server.admin.post('/sources', { name: 'Trade fair' })
    expect([status, body.code, headers['retry-after']]).toEqual([503, 'unavailable', '30'])
    expect(body.detail).toBe('The data of this server cannot be written at the moment; nothing was changed.')
    expect(server.store.health()).toBe('readonly')
    expect(server.events().filter((name) => name.endsWith('.after'))).toEqual([])
    await setReadOnly(false)
    expect((await server.admin.post('/sources', { name: 'Trade fair' })).status).toBe(201)
    expect(server.store.health()).toBeNull()
  })

  it('is found to be written again by asking whether the server is ready, though no other caller writes', async () => {
    const ready = async () => {
      server.clock.advanceMs(60_000)
      return (await server.anonymous.get('//readyz')).status
    }
    expect(await ready()).toBe(200)
    await setReadOnly(true)
    await server.admin.post('/sources', { name: 'Trade fair' })
    expect(await ready()).toBe(503)
    await setReadOnly(false)
    expect([await ready(), server.store.health()]).toEqual([200, null])
  })

  it('is logged once a minute with all that is known of it, and with its code for each request', async () => {
    const lines: { msg: string; code?: string; err?: { stack: string } }[] = []
    const logged = await startServer({ lines: { write: (line) => void lines.push(JSON.parse(line)) } })
    await sql`pragma query_only = 1`.execute(logged.store.db)
    const said = async () => {
      lines.length = 0
      for (let count = 0; count < 3; count++) await logged.admin.post('/sources', { name: 'Trade fair' })
      return lines.map(({ msg, code, err }) => [msg, code, err !== undefined])
    }
    const answered = ['answered', 'unavailable', false]
    const failed = ['A request failed.', 'unavailable', true]
    expect(await said()).toEqual([failed, answered, answered, answered])
    logged.clock.advanceMs(59_999)
    expect(await said()).toEqual([answered, answered, answered])
    logged.clock.advanceMs(1)
    expect(await said()).toEqual([failed, answered, answered, answered])
    await logged.close()
  })

  it('is read all the same, though no write can note that a token was used', async () => {
    await server.admin.get('/account')
    server.clock.advanceMs(120_000)
    await setReadOnly(true)
    for (const path of ['/account', '/leads', '/sources/1', '/leads/export', '/search?q=ab'])
      expect([path, (await server.admin.get(path)).status]).toEqual([path, 200])
  })

  it('leaves an Idempotency-Key free for the same request', async () => {
    const headers = { 'idempotency-key': 'once' }
    await setReadOnly(true)
    expect((await server.admin.post('/sources', { name: 'Trade fair' }, { headers })).status).toBe(503)
    await setReadOnly(false)
    const { status, headers: received } = await server.admin.post('/sources', { name: 'Trade fair' }, { headers })
    expect([status, received['idempotency-replayed']]).toEqual([201, undefined])
  })

  it('keeps no file of a refused upload', async () => {
    const sent = await form({ file: file('plan.txt', 'Quarterly figures') })
    await setReadOnly(true)
    expect((await server.admin.post('/files', sent.body, { headers: sent.headers })).status).toBe(503)
    await setReadOnly(false)
    const kept: string[] = []
    for await (const each of server.app.services.files.keptBefore(new Date('2100-01-01'))) kept.push(each)
    expect(kept).toEqual([])
  })
})

describe('a damaged database', () => {
  it('is reported: 503 for data that cannot be read, and for callers that ask whether the server is ready', async () => {
    let isDamaged = false
    const damaged = await startServer({ open: (image) => openImage(isDamaged ? broken(image, page) : image) })
    const root = sql<{ rootpage: number }>`select rootpage from sqlite_schema where name = 'users'`
    const page = (await root.execute(damaged.store.db)).rows[0]?.rootpage ?? 0
    await damaged.keep()
    expect((await damaged.anonymous.get('//readyz')).status).toBe(200)
    isDamaged = true
    await damaged.rewind()
    damaged.clock.advanceMs(60_000)
    for (const asked of [damaged.anonymous.get('//readyz'), damaged.admin.get('/account')]) {
      const { status, body, headers } = await asked
      expect([status, body.code, body.detail, headers['retry-after']]).toEqual([
        503,
        'unavailable',
        expect.stringMatching(/^The database (of this server )?is damaged.*\b(restored|restore)\b/),
        '60',
      ])
    }
    await damaged.close()
  })

  const broken = (image: Buffer, page: number): Buffer => Buffer.from(image).fill(0xff, 4096 * (page - 1), 4096 * page)
})

describe('a full database', () => {
  it('takes what there is room for and refuses the rest whole', async () => {
    const { rows } = await sql<{ page_count: number }>`pragma page_count`.execute(server.store.db)
    await sql`pragma max_page_count = ${sql.lit((rows[0]?.page_count ?? 1) + 20)}`.execute(server.store.db)
    const name = 'x'.repeat(200)
    const answers: number[] = []
    let refusal: { detail?: string; code?: string } = {}
    for (let count = 0; count < 300 && !answers.includes(503); count++) {
      const { status, body } = await server.admin.post('/products', {
        name,
        sku: `S-${count}`,
        description: name.repeat(20),
        price: 1,
      })
      answers.push(status)
      if (status === 503) refusal = body
    }
    expect(refusal).toMatchObject({
      code: 'unavailable',
      detail: 'The disk of this server is full; nothing was written.',
    })
    expect([...new Set(answers)].sort()).toEqual([201, 503])
    const { body } = await server.admin.get('/products')
    expect(body.meta.total).toBe(answers.filter((status) => status === 201).length)
    await sql`pragma max_page_count = 1000000`.execute(server.store.db)
    expect((await server.admin.post('/products', { name, sku: 'S', price: 1 })).status).toBe(201)
  })

  it('refuses all writes of a group when one has no room, and no listener hears of any of them', async () => {
    const { rows } = await sql<{ page_count: number }>`pragma page_count`.execute(server.store.db)
    await sql`pragma max_page_count = ${sql.lit((rows[0]?.page_count ?? 1) + 20)}`.execute(server.store.db)
    const send = (round: number) =>
      Promise.all(
        Array.from({ length: 20 }, (_, index) => {
          const sku = `S-${round}-${index}`
          return server.admin.post('/products', { name: sku, sku, description: 'x'.repeat(4000), price: 1 })
        }),
      )
    const answers = await send(1)
    const stored = () => server.admin.get('/products', { query: { per_page: '100' } })
    const taken = answers.filter(({ status }) => status === 201).map(({ body }) => body.data.sku)
    expect(answers.map(({ status }) => status)).toContain(503)
    expect([...new Set(answers.map(({ status }) => status))].filter((status) => ![201, 503].includes(status))).toEqual(
      [],
    )
    expect((await stored()).body.data.map(({ sku }: { sku: string }) => sku).sort()).toEqual(taken.sort())
    expect(server.events().filter((name) => name === 'product.create.after')).toHaveLength(taken.length)
    await sql`pragma max_page_count = 1000000`.execute(server.store.db)
    expect((await send(2)).every(({ status }) => status === 201)).toBe(true)
    expect(server.events().filter((name) => name === 'product.create.after')).toHaveLength(20)
  })
})
