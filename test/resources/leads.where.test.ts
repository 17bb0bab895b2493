// POST /…/query: random questions have the answers of an oracle that knows only the replies of the
// lists, for callers who see all records and for callers who do not.
import { beforeAll, expect, it } from 'vitest'
import type { Caller } from '../support/app.ts'
import { contract } from '../support/contract.ts'
import { question, simpleQuestions } from '../support/questions/compose.ts'
import { known, oracle, related, type Seen } from '../support/questions/oracle.ts'
import { type Json, paths, randomFrom, type Type, types } from '../support/questions/random.ts'
import { addWorld, all, type World } from '../support/questions/world.ts'
import { useSharedServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const server = useSharedServer({ config: { timezone: 'Europe/Berlin' } })

const seed = Number(process.env.ACCORD_TEST_SEED ?? 7)

let world: World
let callers: { caller: Caller; seen: Seen }[]

beforeAll(async () => {
  world = await addWorld(server)
  // The oracle knows the references of records out of view, so that a leak would show.
  const ann = await server.as(2)
  const clerk = await addUser(server, 'Clerk', {
    permissions: ['contacts', 'contacts.persons', 'quotes', 'products', 'activities', 'mail', 'mail.inbox'],
  })
  callers = []
  for (const caller of [server.admin, ann, clerk]) {
    const seen = {} as Record<Type, Set<number>>
    for (const type of types) seen[type] = new Set((await all(paths[type], caller)).map(({ id }) => id))
    callers.push({ caller, seen })
  }
}, 300_000)

it.each(types)('the oracle knows every condition on %s', (type) => {
  const { schemas } = (contract as Json).components
  const noun = { activities: 'Activity' }[type as string] ?? `${type[0]?.toUpperCase()}${type.slice(1, -1)}`
  const expected = Object.keys(schemas[`${noun}Conditions`].properties)
  // No record comes from an import.
  const asked = [...known[type].keys(), ...Object.keys(related[type]), 'custom_attributes', 'import_id']
  expect(expected.filter((name) => !asked.includes(name))).toEqual([])
})

/** Asks a question, and compares the answer with that of the oracle. Returns its size. */
async function ask(who: number, type: Type, where: Json): Promise<number> {
  const { caller, seen } = callers[who] as (typeof callers)[number]
  const reply = await caller.post(`${paths[type]}/query?per_page=100&sort=id&fields=id`, { where })
  const asked = `${type} of caller ${who}: ${JSON.stringify(where)}`
  expect(reply.status, `${asked} ${reply.text}`).toBe(200)
  const expected = world.records[type]
    .filter((record) => seen[type].has(record.id) && oracle(world, seen, type, record, where))
    .map(({ id }) => id)
  expect(
    reply.body.data.map(({ id }: Json) => id),
    asked,
  ).toEqual(expected)
  expect(reply.body.meta.total, asked).toBe(expected.length)
  return expected.length
}

it.each(types)('every condition on %s selects what the oracle selects', { timeout: 120_000 }, async (type) => {
  const sizes = new Set<number>()
  for (const where of simpleQuestions(randomFrom(seed), world, type)) sizes.add(await ask(0, type, where))
  expect(sizes.size).toBeGreaterThan(5)
})

const number = Number(process.env.ACCORD_TEST_QUESTIONS ?? 1_000)

it('random questions have the answers of the oracle', { timeout: number * 100 + 60_000 }, async () => {
  const random = randomFrom(seed)
  const sizes = new Set<string>()
  for (let n = 0; n < number; n++) {
    const type = random.of(types)
    const who = random.chance(0.6) ? 0 : 1 + random.below(2)
    const where = question(random, world, type)
    // A `where` has at most 100 conditions, and the clerk may not list leads.
    if (JSON.stringify(where).length > 2_500 || callers[who]?.seen[type].size === 0) continue
    sizes.add(`${type} ${await ask(who, type, where)}`)
  }
  expect(sizes.size).toBeGreaterThan(60)
})
