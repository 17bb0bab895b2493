// POST /…/query: a question that no index serves is refused in a large list. Here lists are large
// that have more than 20 records, so that the oracle can check the answers to all others.
import { sql } from 'kysely'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import type { Caller } from '../support/app.ts'
import { isPostgres } from '../support/engine.ts'
import { question, simpleQuestions } from '../support/questions/compose.ts'
import { oracle, type Seen } from '../support/questions/oracle.ts'
import { type Json, paths, randomFrom, type Type, types } from '../support/questions/random.ts'
import { addWorld, all, type World } from '../support/questions/world.ts'
import { statementsOf } from '../support/statements.ts'
import { useSharedServer } from '../support/using.ts'

vi.mock('../../src/kernel/resource/read-limit.ts', () => ({ maxRead: 20 }))

const server = useSharedServer({ config: { timezone: 'Europe/Berlin' } })

let world: World
let seen: Seen
let ann: { caller: Caller; seen: Seen }
/** One record of each type, with a word that only its text has. */
const rare: Record<string, number> = {}
/** A text of each type. */
const texts = { leads: 'title', persons: 'name', quotes: 'subject', products: 'name' } as const
/** The beginnings of words that many records have. */
const common = { leads: 'e', persons: 'e', quotes: 'gr', products: 's' }
const large = types.filter((type) => type !== 'organizations')

async function seenBy(caller: Caller): Promise<Seen> {
  const found = {} as Record<Type, Set<number>>
  for (const type of types) found[type] = new Set((await all(paths[type], caller)).map(({ id }) => id))
  return found
}

beforeAll(async () => {
  world = await addWorld(server)
  for (const [type, field] of Object.entries(texts)) {
    const { id } = world.records[type as Type][3] as Json
    const reply = await server.admin.put(`${paths[type as Type]}/${id}`, { [field]: 'Xylophone' })
    expect(reply.status, reply.text).toBe(200)
    rare[type] = id
  }
  for (const type of types) world.records[type] = await all(paths[type], server.admin)
  seen = await seenBy(server.admin)
  const caller = await server.as(2)
  ann = { caller, seen: await seenBy(caller) }
}, 300_000)

const ask = (type: Type, where: Json, query = '', caller: Caller = server.admin) =>
  caller.post(`${paths[type]}/query?per_page=100&fields=id${query}`, { where })
const isCostly = { status: 422, body: { code: 'query_too_costly' } }
const idsOf = ({ body }: { body: Json }): number[] => body.data.map(({ id }: Json) => id)

describe.each(large)('a question about %s', (type) => {
  const sorts = ['id', '-created_at', 'updated_at,-id']

  it('is refused without a condition that an index serves, whatever stands around it', async () => {
    const costly: Json[] = [{}, { created_at: { gte: '2026-03-01' } }, { or: [{ id: 1 }] }, { not: [{ id: 1 }] }]
    for (const where of costly)
      for (const asked of [where, { and: [where] }, { or: [where, { id: 1 }] }, { not: [where] }])
        for (const sort of sorts)
          expect(await ask(type, asked, `&sort=${sort}`), JSON.stringify(asked)).toMatchObject(isCostly)
    expect((await ask(type, { or: [{ id: 1 }] })).body.detail).toBe(
      `By or, no index leaves at most 20 ${type} to read.`,
    )
  })

  it('is answered by one such condition, in each order', async () => {
    for (const where of [{ id: { in: [1, 2, 3] } }, { and: [{ id: { in: [1, 2, 3] } }], not: [{ id: 9 }] }])
      for (const sort of sorts) {
        const reply = await ask(type, where, `&sort=${sort}`)
        expect(idsOf(reply).sort(), reply.text).toEqual([1, 2, 3])
      }
  })

  it.skipIf(isPostgres)('reads the records that the index found, in each order', async () => {
    const { db } = server.store
    for (const sort of sorts) {
      const statements = await statementsOf(() => ask(type, { id: { in: [1, 2, 3] } }, `&sort=${sort}&count=none`))
      const [found] = statements.filter((each) => each.startsWith(`select "${type}"."id" as "id"`))
      const { rows } = await sql
        .raw<{ detail: string }>(`explain query plan ${found?.replaceAll('?', 'null')}`)
        .execute(db)
      const steps = rows.map(({ detail }) => detail)
      expect(steps.join('\n')).toContain(`SEARCH ${type} USING`)
      expect(steps.join('\n')).not.toContain(`SCAN ${type}`)
    }
  })
})

describe('words', () => {
  it.each(Object.keys(texts) as (keyof typeof texts)[])(
    'serve a question about %s if few records have them',
    async (type) => {
      expect(idsOf(await ask(type, {}, '&q=xylophone'))).toContain(rare[type])
      expect(await ask(type, { not: [{ id: 1 }] }, `&q=${common[type]}`)).toMatchObject(isCostly)
      expect(await ask(type, {}, '&q=%27')).toMatchObject(isCostly)
      expect((await ask(type, {}, `&q=${common[type]}`)).body.detail).toContain('By q, ')
      const few = await ask(type, { id: { in: [1, 2, 3, 4] } }, '&q=xylophone')
      expect(idsOf(few)).toEqual((rare[type] as number) < 5 ? [rare[type]] : [])
    },
  )
})

describe('conditions on related records', () => {
  it.each([
    ['leads', 'person', 'persons'],
    ['quotes', 'person', 'persons'],
    ['quotes', 'lead', 'leads'],
    ['activities', 'lead', 'leads'],
    ['activities', 'person', 'persons'],
    ['emails', 'person', 'persons'],
    ['emails', 'lead', 'leads'],
  ] as const)('of %s by %s are bound by their own list', async (type, key, other) => {
    for (const where of [{}, { user_id: { is_empty: false } }, { created_at: { gte: '2026-03-01' } }]) {
      for (const asked of [
        { id: 1, [key]: where },
        { id: 1, or: [{ not: [{ [key]: where }] }] },
      ]) {
        const reply = await ask(type, asked)
        expect(reply, JSON.stringify(asked)).toMatchObject(isCostly)
        expect(reply.body.detail).toContain(`at most 20 ${other} to read`)
      }
    }
    expect((await ask(type, { id: 1, [key]: { id: { in: [1, 2] } } })).status).toBe(200)
  })

  it('are served by an address, a number or a text that begins so', async () => {
    for (const person of [
      { email: 'p1@example.com' },
      { phone: '+49 30 123451' },
      { name: { starts_with: 'xyl' } },
      { external_id: 'erp:X-3' },
    ])
      expect((await ask('quotes', { id: 1, person })).status, JSON.stringify(person)).toBe(200)
  })
})

describe('random questions', () => {
  it('are answered as the oracle answers them, or refused', { timeout: 240_000 }, async () => {
    const random = randomFrom(Number(process.env.ACCORD_TEST_SEED ?? 3))
    const count = Number(process.env.ACCORD_TEST_QUESTIONS ?? 400)
    const questions = [
      ...large.flatMap((type) => simpleQuestions(random, world, type).map((where): [Type, Json] => [type, where])),
      ...Array.from({ length: count }, (): [Type, Json] => {
        const type = random.of(types)
        const where = question(random, world, type)
        return [type, random.chance(0.5) ? { ...where, id: { in: [1, 2, 3, 5, 9, 40] } } : where]
      }),
    ]
    const statuses = { answered: 0, refused: 0 }
    for (const [type, where] of questions) {
      if (JSON.stringify(where).length > 2_500) continue
      const view = random.chance(0.3) ? ann : { caller: server.admin, seen }
      const reply = await ask(type, where, '&sort=id', view.caller)
      if (reply.status === 422) {
        expect(reply, reply.text).toMatchObject(isCostly)
        statuses.refused++
        continue
      }
      const expected = world.records[type].filter(
        (record) => view.seen[type].has(record.id) && oracle(world, view.seen, type, record, where),
      )
      expect(idsOf(reply), `${type} ${JSON.stringify(where)}`).toEqual(expected.map(({ id }) => id))
      statuses.answered++
    }
    expect(statuses.answered).toBeGreaterThan(100)
    expect(statuses.refused).toBeGreaterThan(100)
  })
})
