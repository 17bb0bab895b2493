// Records of another type, in every route below a record, every timeline and every `include`: the
// caller needs the permission and ability for the embedded type, and the record must be visible.
import { sql } from 'kysely'
import { beforeAll, describe, expect, it } from 'vitest'
import { listOperations, schemaOf, successOf } from '../../codegen/read.ts'
import { permissionKeys } from '../../src/contract/operations.gen.ts'
import { knownAbilities } from '../../src/kernel/auth/abilities.ts'
import { withAncestors } from '../../src/kernel/auth/permissions.ts'
import { start } from '../support/app.ts'
import { document, fact, facts, follow, parametersOf, type SchemaObject } from '../support/schema.ts'
import { addUser } from '../support/viewers.ts'
import { asHadBy, give, giveSome, type People, people } from './matrix.scope.ts'
import { type Cells, keep, token } from './matrix.ts'
import { type Answer, request, send, urlOf, type World } from './support.ts'

const listed = new Map(listOperations(document).map((each) => [each.id, each]))
const nameOf = (schema: SchemaObject | undefined): string | undefined =>
  (schema?.$ref as string | undefined)?.split('/').at(-1)

/** Returns the schema name of the records in an operation's reply. */
function answeredBy(id: string): string | undefined {
  const operation = listed.get(id)?.operation
  const success = operation && successOf(document, operation)
  const data = follow(schemaOf(success?.reply)).properties?.data
  return nameOf(data) ?? nameOf(follow(data).items)
}

/** Maps the schema of a record to the operation that reads it. */
const shows = new Map(
  facts.flatMap(([id, { method, path }]): [string, string][] => {
    const schema = method === 'get' && path.endsWith('/{id}') ? answeredBy(id) : undefined
    return schema === undefined ? [] : [[schema, id]]
  }),
)
const collectionOf = (show: string): string => fact(show).path.split('/').at(-2) ?? ''
const listOf = (show: string): string => {
  const path = fact(show).path.replace('/{id}', '')
  return facts.find(([, each]) => each.method === 'get' && each.path === path)?.[0] ?? ''
}

interface Nested {
  id: string
  /** The record type in the reply. */
  type: string
  show: string
}

const nested = facts.flatMap(([id, { path, public: isPublic }]): Nested[] => {
  const parent = /\/([\w-]+)\/\{id\}\//.exec(path)?.[1]
  const show = shows.get(answeredBy(id) ?? '')
  if (parent === undefined || show === undefined || isPublic || collectionOf(show) === parent) return []
  // Makes a record of its own.
  if (fact(id).status === 201) return []
  return [{ id, type: collectionOf(show), show }]
})
const timelines = facts.filter(([id]) => answeredBy(id) === 'TimelineEntry').map(([id]) => id)

/** The values of `include` that add parts of the record, or records of its own type. */
const ofItsOwn = new Set(['inventories', 'children', 'parent', 'custom_labels'])
const including = facts.flatMap(([id, each]) => {
  const parameter = parametersOf(id, 'query').find(({ name }) => name === 'include')
  const names = (follow(parameter?.schema.items).enum as string[] | undefined) ?? []
  return each.public ||
    each.permission === null ||
    each.method !== 'get' ||
    !/^(get|list)/.test(id) ||
    names.length === 0
    ? []
    : [{ id, names: names.filter((name) => !ofItsOwn.has(name)) }]
})

/** Links the records of the world to each other, so that every route returns a record. */
async function join({ server: { store }, main }: World): Promise<void> {
  const { db } = store
  const {
    leads,
    persons,
    organizations,
    quotes,
    emails,
    products,
    warehouses,
    locations,
    activities,
    campaigns,
    events,
  } = main as Record<string, number>
  await sql`update leads set person_id = ${persons} where id = ${leads}`.execute(db)
  await sql`update persons set organization_id = ${organizations} where id = ${persons}`.execute(db)
  await sql`update quotes set person_id = ${persons} where id = ${quotes}`.execute(db)
  await sql`update emails set person_id = ${persons}, lead_id = ${leads} where id = ${emails}`.execute(db)
  await sql`update warehouse_locations set warehouse_id = ${warehouses} where id = ${locations}`.execute(db)
  await sql`insert into activity_participants (activity_id, person_id) values (${activities}, ${persons})`.execute(db)
  await sql`update marketing_campaigns set marketing_event_id = ${events} where id = ${campaigns}`.execute(db)
  const stock = sql`insert into product_inventories (product_id, warehouse_id, warehouse_location_id, created_at, updated_at)
    select ${products}, ${warehouses}, id, ${start}, ${start} from warehouse_locations where warehouse_id = ${warehouses}
    on conflict do nothing`
  await stock.execute(db)
  for (const noun of ['lead', 'person', 'organization', 'quote', 'product', 'warehouse']) {
    const [table, column] = [sql.table(`${noun}_activities`), sql.ref(`${noun}_id`)]
    const link = sql`insert into ${table} (${column}, activity_id) values (${main[`${noun}s`]}, ${activities}) on conflict do nothing`
    await link.execute(db)
  }
}

export function nestedCells(of: () => World, cells: Cells): void {
  let own: World
  let who: People

  beforeAll(async () => {
    await of().server.rewind()
    who = await people(of())
    own = asHadBy(of(), who)
    await join(own)
    await keep(own)
  })

  it('finds the routes in the contract', () => {
    expect(nested.map(({ id }) => id)).toEqual(expect.arrayContaining(['attachLeadEmail', 'listPersonQuotes']))
    expect([nested.length, timelines.length, including.length].map((count) => count > 5)).toEqual([true, true, true])
  })

  const holding = async (permissions: readonly string[], abilities: readonly string[] = ['*']): Promise<string> => {
    const { id } = await addUser(own.server, `Holder ${Math.random()}`, { permissions: [...permissions] })
    return token(own, { userId: id, abilities })
  }
  const without = (key: string): string[] =>
    permissionKeys.filter((each) => each !== key && !each.startsWith(`${key}.`))
  const unable = (ability: string): string[] => knownAbilities.filter((each) => !each.includes('*') && each !== ability)

  /** Requests a nested record. For a link operation, links the record again. */
  async function ask({ id, type }: Nested, text: string): Promise<Answer> {
    const { method, body } = request(own, id)
    const url = urlOf(own, id) + (method === 'GET' ? '?per_page=100' : '')
    const named = body && { ...body, [`${type.replace(/s$/, '')}_id`]: own.main[type] }
    return send(own, id, { method, url, token: text, ...(named && { body: named }) })
  }
  const idsIn = ({ body }: Answer): number[] => [body?.data ?? []].flat().map((each: { id: number }) => each.id)

  describe.each(nested)('$id', (route) => {
    const { id, type, show } = route

    it(`answers ${type} only to callers who may read them`, async () => {
      await own.server.rewind()
      await give(own, who.caller)
      const record = own.main[type] ?? 0
      const reading = fact(id).method === 'get' ? fact(listOf(show)) : fact(show)
      cells.check(`${id} in sight`, idsIn(await ask(route, await who.seeing('individual'))).includes(record), true)
      const refused: [string, string][] = [
        [`${id} without ${reading.permission}`, await holding(without(reading.permission ?? ''))],
        [`${id} without ${reading.ability}`, await holding(permissionKeys, unable(reading.ability ?? ''))],
      ]
      for (const [name, text] of refused) {
        const answer = await ask(route, text)
        cells.check(name, [answer.status, idsIn(answer)], [403, []])
      }
      cells.settle()
    })

    // Not products, which every caller sees, and not mails, which are visible with their lead or
    // person.
    if (['leads', 'persons', 'quotes'].includes(type))
      it(`answers no ${type} out of sight`, async () => {
        await own.server.rewind()
        await give(own, who.caller)
        await giveSome(own, { [type]: own.main[type] ?? 0 }, who.outsider)
        // A lead in sight shows all of its records.
        const isOfLead = /\/leads\/\{id\}\//.test(fact(id).path)
        if (!isOfLead) await sql`update leads set user_id = ${who.outsider}`.execute(own.server.store.db)
        const answer = await ask(route, await who.seeing('group'))
        cells.check(`${id} out of sight`, [answer.status, idsIn(answer)], [200, isOfLead ? [own.main[type]] : []])
        cells.settle()
      })
  })

  describe.each(timelines)('%s', (id) => {
    it('tells of activities and mail to those who may read them', async () => {
      await own.server.rewind()
      await give(own, who.caller)
      const sources = async (text: string): Promise<Set<string>> => {
        const { body } = await send(own, id, { method: 'GET', url: `${urlOf(own, id)}?per_page=100`, token: text })
        return new Set(body.data.map((each: { source: string }) => each.source))
      }
      const all = await sources(await holding(permissionKeys))
      cells.check(`${id}, activities`, all.has('activity'), true)
      const limits = { activity: fact('listActivities'), email: fact('getEmail') }
      for (const [source, { permission, ability }] of Object.entries(limits)) {
        const lacking = await sources(await holding(without(permission ?? '')))
        cells.check(`${id}, ${source} without ${permission}`, lacking.has(source), false)
        const narrow = await sources(await holding(permissionKeys, unable(ability ?? '')))
        cells.check(`${id}, ${source} without ${ability}`, narrow.has(source), false)
      }
      cells.settle()
    })
  })

  describe.each(including)('$id', ({ id, names }) => {
    it('includes no more than references of what the caller may not read', async () => {
      await own.server.rewind()
      await give(own, who.caller)
      const { permission, ability } = fact(id)
      const narrow = await holding(withAncestors([permission ?? '']), [ability ?? ''])
      const wide = await holding(permissionKeys)
      for (const name of names) {
        // A full record has `created_at`, a reference does not.
        const isFull = async (text: string): Promise<boolean> => {
          const { method, url } = request(own, id)
          const { body } = await send(own, id, { method, url: `${url}?include=${name}`, token: text })
          const found = [body?.data ?? []]
            .flat()
            .map((each: Record<string, unknown>) => each[name] ?? each[`marketing_${name}`])
          return JSON.stringify(found).includes('"created_at"')
        }
        cells.check(`${id} with ${name}, ${permission} and ${ability} alone`, await isFull(narrow), false)
        cells.check(`${id} with ${name}, all keys`, await isFull(wide), true)
      }
      cells.settle()
    })
  })
}
