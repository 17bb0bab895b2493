// No list asks once per row: a page of many records takes as many SQL statements as a page of a few, with references in full
// and without. Walks every list of the contract; what a list shows is made through the API.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { seeded, validBody } from '../support/given.ts'
import { creators, fact, facts, parametersOf } from '../support/schema.ts'
import { statementsOf } from '../support/statements.ts'
import { links, request, send, startWorld, urlOf, type World } from './support.ts'

const few = 5
const many = 50

/** Lists that hold too few records here for two pages of different sizes to be compared. */
const thin: string[] = []
const lists = facts.filter(([id, { query }]) => id.startsWith('list') && 'per_page' in query).map(([id]) => id)

let world: World
beforeAll(async () => {
  world = await startWorld()
  for (const id of creators.values()) await fill(id)
}, 180_000)
afterAll(() => world.server.close())

/** Makes more records of a kind, each with the links it can have. Stops at the first that is refused. */
async function fill(id: string): Promise<void> {
  const known = (entity: string): number | undefined => world.main[entity] ?? seeded(entity)
  for (let made = 0; made < many; made++) {
    const answer = await send(world, id, {
      method: 'POST',
      url: fact(id).path,
      body: validBody(id, known),
    }).catch(() => undefined)
    if (answer?.status !== 201) return
    await linkAll(fact(id).path, answer.body.data.id)
  }
}

async function linkAll(collection: string, id: number): Promise<void> {
  const below = links().filter((each) => fact(each).path.startsWith(`${collection}/{id}/`))
  for (const link of below) {
    const { url, body } = request(world, link)
    const own = url.replace(new RegExp(`^${collection}/\\d+/`), `${collection}/${id}/`)
    await send(world, link, { method: 'POST', url: own, body }).catch(() => undefined)
  }
}

describe.each(lists)('%s', (id) => {
  it('takes as many statements for a long page as for a short one', async () => {
    const include = parametersOf(id, 'query').find(({ name }) => name === 'include')
    const includes = (include?.schema.items?.enum ?? []) as string[]
    const queries = ['', ...(includes.length > 0 ? [`&include=${includes.slice(0, 5).join(',')}`] : [])]
    for (const query of queries) {
      const page = async (size: number) => {
        let rows = 0
        const url = `${urlOf(world, id)}?per_page=${size}${query}`
        const statements = await statementsOf(async () => {
          const { status, body, text } = await send(world, id, { method: 'GET', url })
          expect(status, text).toBe(200)
          rows = body.data.length
        })
        return { rows, statements }
      }
      await page(1)
      const [short, long] = [await page(few), await page(many)]
      if (long.rows <= short.rows) thin.push(id)
      expect(long.statements.length, differing(short.statements, long.statements)).toBe(short.statements.length)
    }
  })
})

/** What the longer run asks more often. */
function differing(short: readonly string[], long: readonly string[]): string {
  const times = (all: readonly string[], text: string): number => all.filter((each) => each === text).length
  const more = [...new Set(long)].filter((text) => times(long, text) > times(short, text))
  return `asked once per row:\n${more.join('\n')}`
}

describe('the lists', () => {
  it('are mostly long enough to tell', () => {
    expect(thin.length, `too short: ${thin.join(', ')}`).toBeLessThan(lists.length / 2)
  })
})
