// Lists do not run a query for each row: a page of many records needs as many SQL statements as a
// page of few, with and without `include`. Tests every list of the contract.
import { beforeAll, describe, expect, it } from 'vitest'
import { seeded, unique, validBody } from '../support/given.ts'
import { bodySchema, creators, entityOf, fact, facts, isReference, parametersOf, typesOf } from '../support/schema.ts'
import { statementsOf } from '../support/statements.ts'
import { links, request, send, urlOf } from './support.ts'
import { useWorld } from './use-world.ts'

const few = 3
const many = 12

const lists = facts.filter(([id, { query }]) => id.startsWith('list') && 'per_page' in query).map(([id]) => id)
/** The lists with too few records to compare two page sizes. */
const thin = new Set<string>()

const world = useWorld()
beforeAll(async () => {
  for (const [entity, id] of creators) await fill(entity, id)
  for (const [id, { method, path }] of facts) if (method === 'put' && path.endsWith('/{id}')) await rename(id)
}, 300_000)

type Json = Record<string, unknown>

const attempt = (id: string, url: string, body: Json | undefined, method = 'POST') =>
  send(world, id, { method, url, ...(body && { body }) }).catch(() => undefined)

const known = (entity: string): number | undefined => world.main[entity] ?? seeded(entity)

/** Creates more records of a kind, with as many references to the main records as possible. */
async function fill(entity: string, id: string): Promise<void> {
  for (let made = 0; made < many; made++) {
    const { path } = fact(id)
    const plain = validBody(id, known)
    const answers = [await attempt(id, path, { ...plain, ...references(id) })]
    if (answers[0]?.status === 422) answers.push(await attempt(id, path, validBody(id, known)))
    const created = answers.find((answer) => answer?.status === 201)
    // Some records cannot be created twice from their example.
    if (!created) return
    await link(entity, path, created.body.data.id)
  }
}

/** Returns all references that the body of an operation can contain, to main records. */
function references(id: string): Json {
  const found: Json = {}
  for (const [name, schema] of Object.entries(bodySchema(id)?.properties ?? {})) {
    const target = isReference(name, schema) ? known(entityOf(name) ?? '') : undefined
    if (target !== undefined && entityOf(name) !== 'stages')
      found[name] = typesOf(schema).includes('array') || name.endsWith('_ids') ? [target] : target
  }
  return found
}

/** Links a new record with the main records, in both directions. */
async function link(entity: string, collection: string, id: number): Promise<void> {
  for (const each of links) {
    const { path } = fact(each)
    if (path.startsWith(`${collection}/{id}/`)) {
      const { url, body } = request(world, each)
      await attempt(each, url.replace(new RegExp(`^${collection}/\\d+/`), `${collection}/${id}/`), body)
    } else if (path.endsWith(`/${entity}`)) {
      const body = validBody(each, (other) => (other === entity ? id : known(other)))
      await attempt(each, urlOf(world, each), body)
    }
  }
}

/** Changes a main record several times, so that it has a history. */
async function rename(id: string): Promise<void> {
  const name = ['name', 'title', 'subject', 'description'].find((each) => bodySchema(id)?.properties?.[each])
  if (name === undefined) return
  for (let made = 0; made < many; made++) await attempt(id, urlOf(world, id), { [name]: `Renamed ${unique()}` }, 'PUT')
}

describe.each(lists)('%s', (id) => {
  it('takes as many statements for a long page as for a short one', async () => {
    const include = parametersOf(id, 'query').find(({ name }) => name === 'include')
    const includes = (include?.schema.items?.enum ?? []) as string[]
    for (const query of ['', ...(includes.length > 0 ? [`&include=${includes.slice(0, 5).join(',')}`] : [])]) {
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
      await page(few)
      const [short, long] = [await page(few), await page(many)]
      if (long.rows <= short.rows) thin.add(id)
      expect(long.statements.length, differing(short.statements, long.statements)).toBe(short.statements.length)
    }
  })
})

/** Returns the statements that the longer run executes more often. */
function differing(short: readonly string[], long: readonly string[]): string {
  const times = (all: readonly string[], text: string): number => all.filter((each) => each === text).length
  const more = [...new Set(long)].filter((text) => times(long, text) > times(short, text))
  return `asked once per row:\n${more.join('\n')}`
}

describe('the lists', () => {
  it('are long enough to tell, nearly all of them', () => {
    expect([...thin].length, `too short: ${[...thin].join(', ')}`).toBeLessThan(lists.length / 4)
  })
})
