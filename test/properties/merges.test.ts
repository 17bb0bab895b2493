// Random histories of merges: what is merged and taken back in the reverse order is as before, and
// no row refers to a record that is gone. Writes between them stay, as a model expects.
// ACCORD_MERGE_RUNS sets the number of histories.
import fc from 'fast-check'
import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { given } from '../support/given.ts'
import { dangling, everything } from '../support/merges.ts'
import { useServer } from '../support/using.ts'

const server = useServer()
const runs = Number(process.env.ACCORD_MERGE_RUNS ?? 40)

type Json = Record<string, any>

const types = { persons: '/contacts/persons', organizations: '/contacts/organizations' } as const
type Type = keyof typeof types

const part = fc.record({
  job: fc.constantFrom(null, 'Clerk', 'Analyst'),
  emails: fc.nat(2),
  phones: fc.nat(2),
  externals: fc.subarray(['erp', 'hubspot']),
  tag: fc.boolean(),
  leads: fc.nat(2),
  quote: fc.boolean(),
  activity: fc.boolean(),
  mail: fc.boolean(),
  custom: fc.constantFrom(null, 'x', 'y'),
})
const history = fc.record({
  type: fc.constantFrom<Type>('persons', 'organizations'),
  records: fc.array(part, { minLength: 2, maxLength: 4 }),
  // Each step merges the records at some places into another one, of those that are left.
  steps: fc.array(fc.record({ into: fc.nat(), from: fc.nat(), two: fc.boolean(), sent: fc.boolean() }), {
    minLength: 1,
    maxLength: 3,
  }),
  /** A change between merges that no merge touches. */
  writes: fc.boolean(),
})

const ok = async (call: Promise<{ status: number; body: Json; text: string }>): Promise<Json> => {
  const { status, body, text } = await call
  expect(status < 300 ? '' : text).toBe('')
  return body.data as Json
}

const letter = { subject: 'Offer', html: '<p>Hello</p>', to: ['someone@else.test'] }

let count = 0

async function populate(type: Type, tag: number, index: number, p: fc.Arbitrary<never> | any): Promise<number> {
  const make = given(server.admin)
  const n = ++count
  const external_ids = Object.fromEntries(p.externals.map((system: string) => [system, `${n}`]))
  const custom_attributes = p.custom === null ? {} : { mark: p.custom }
  const common = { external_ids, custom_attributes, ...(p.tag && { tag_ids: [tag] }) }
  if (type === 'organizations') {
    const { id } = await ok(server.admin.post(types.organizations, { name: `Company ${n} of ${index}`, ...common }))
    for (let i = 0; i < p.leads; i++) await make.person({ organization_id: id })
    if (p.activity) await make.activity({ organization_ids: [id] })
    return id
  }
  const points = (many: number, text: (i: number) => string) =>
    Array.from({ length: many }, (_, i) => ({ value: text(i) }))
  const { id } = await ok(
    server.admin.post(types.persons, {
      name: `Person ${n}`,
      job_title: p.job,
      emails: points(p.emails, (i) => `p${n}.${i}@many.test`),
      contact_numbers: points(p.phones, (i) => `+49 30 12345${i}${n % 3}`),
      ...common,
    }),
  )
  for (let i = 0; i < p.leads; i++) await make.lead({ person_id: id })
  if (p.quote) await make.quote({ person_id: id })
  if (p.activity) await make.activity({ person_ids: [id], participants: { persons: [id] } })
  if (p.mail) await ok(server.admin.post('/emails', { ...letter, person_id: id }))
  return id
}

describe('mergePersons', () => {
  it(`and the way back are the identity, in ${runs} random histories`, { timeout: 60_000 + runs * 1000 }, async () => {
    for (const entity_type of Object.keys(types))
      await ok(server.admin.post('/settings/attributes', { entity_type, code: 'mark', name: 'Mark', type: 'text' }))
    const { id: tag } = await given(server.admin).tag()
    await fc.assert(
      fc.asyncProperty(history, async ({ type, records, steps, writes }) => {
        const path = types[type]
        const ids: number[] = []
        for (const [index, p] of records.entries()) ids.push(await populate(type, tag, index, p))
        const left = [...ids]
        const done: [into: number, from: number][] = []
        const states = [await everything(server)]
        for (const { into, from, two, sent } of steps) {
          if (left.length < 2) break
          const [winner = 0] = left.splice(into % left.length, 1)
          const others = left.splice(from % left.length, two ? 2 : 1)
          left.push(winner)
          const fields = sent ? { name: `Sent ${++count}` } : {}
          await ok(server.admin.post(`${path}/${winner}/merge`, { ids: others, fields }))
          expect(await dangling(server)).toEqual([])
          for (const other of others) {
            done.push([winner, other])
            const { status, headers } = await server.admin.get(`${path}/${other}`)
            expect([status, String(headers.location).split('/').at(-1)]).toEqual([308, String(winner)])
          }
          states.push(await everything(server))
        }
        // An update without a change does not conflict.
        if (writes)
          await ok(
            server.admin.put(`${path}/${left[0]}`, { name: (await ok(server.admin.get(`${path}/${left[0]}`))).name }),
          )
        for (const [into, from] of done.reverse()) {
          const { status, body, text } = await server.admin.post(`${path}/${into}/unmerge`, { id: from })
          expect(status, text).toBe(200)
          expect(body.meta.conflicts).toEqual([])
        }
        expect(await dangling(server)).toEqual([])
        expect(await everything(server)).toEqual(states[0])
        await clear()
      }),
      { numRuns: runs, endOnFailure: runs > 1000 },
    )
  })
})

/** A merge of two of the persons that are left, or a write; numbers select persons and leads. */
const step = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('merge' as const), a: fc.nat(), b: fc.nat(), sent: fc.boolean() }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constantFrom('rename', 'title', 'move', 'add', 'delete'),
      a: fc.nat(),
      b: fc.nat(),
    }),
  },
)

interface LeadModel {
  person: number
  title: string
  wasMoved: boolean
}

/** What a merge changed: the name of its person, and the person of leads. */
interface MergeModel {
  into: number
  from: number
  name: { before: string; after: string } | null
  leads: number[]
}

/** Persons and leads as they must be after every merge, write and unmerge. */
class Model {
  readonly names = new Map<number, string>()
  readonly left: number[] = []
  readonly leads = new Map<number, LeadModel>()
  readonly merges: MergeModel[] = []

  merge(into: number, from: number, sent: string | null): void {
    const before = this.names.get(into) ?? ''
    const leads = [...this.leads].filter(([, { person }]) => person === from).map(([id]) => id)
    this.merges.push({ into, from, name: sent === null ? null : { before, after: sent }, leads })
    if (sent !== null) this.names.set(into, sent)
    for (const id of leads) (this.leads.get(id) as LeadModel).person = into
    this.left.splice(this.left.indexOf(from), 1)
  }

  /** Takes back the last merge. Returns whether the name was changed since. */
  unmerge({ into, from, name, leads }: MergeModel): boolean {
    this.left.push(from)
    for (const id of leads) {
      const lead = this.leads.get(id)
      if (lead?.person === into) lead.person = from
    }
    const isChanged = name !== null && this.names.get(into) !== name.after
    if (name !== null && !isChanged) this.names.set(into, name.before)
    return isChanged
  }
}

describe('unmergePerson', () => {
  it(`keeps what was written since, in ${runs} random histories`, { timeout: 60_000 + runs * 1000 }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 9 }), async (steps) => {
        const model = new Model()
        for (let i = 0; i < 4; i++) {
          const { id, name } = await given(server.admin).person({ name: `Person ${++count}` })
          model.names.set(id, name)
          model.left.push(id)
          await addLead(model, id)
        }
        for (const each of steps) await take(model, each)
        expect(await present(model)).toEqual(expected(model))
        for (const merge of [...model.merges].reverse()) {
          const { status, body, text } = await server.admin.post(`${types.persons}/${merge.into}/unmerge`, {
            id: merge.from,
          })
          expect(status, text).toBe(200)
          const names = body.meta.conflicts.filter(({ field }: Json) => field === 'name')
          expect(names.map(({ id }: Json) => id)).toEqual(model.unmerge(merge) ? [merge.into] : [])
          expect(await present(model)).toEqual(expected(model))
          expect(await dangling(server)).toEqual([])
        }
        await clear()
      }),
      { numRuns: runs, endOnFailure: runs > 1000 },
    )
  })
})

async function addLead(model: Model, person: number): Promise<void> {
  const { id, title } = await given(server.admin).lead({ person_id: person })
  model.leads.set(id, { person, title, wasMoved: false })
}

async function take(model: Model, { kind, a, b, ...more }: { kind: string; a: number; b: number }): Promise<void> {
  const person = model.left[a % model.left.length] as number
  const [id, lead] = [...model.leads][b % model.leads.size] ?? []
  if (kind === 'merge') {
    const others = model.left.filter((each) => each !== person)
    const other = others[b % others.length]
    if (other === undefined) return
    const sent = 'sent' in more && more.sent === true ? `Sent ${++count}` : null
    const fields = sent === null ? {} : { name: sent }
    await ok(server.admin.post(`${types.persons}/${person}/merge`, { ids: [other], fields }))
    return model.merge(person, other, sent)
  }
  if (kind === 'rename') {
    model.names.set(person, `Renamed ${++count}`)
    await ok(server.admin.put(`${types.persons}/${person}`, { name: model.names.get(person) }))
  } else if (kind === 'add') await addLead(model, person)
  else if (id === undefined || lead === undefined) return
  else if (kind === 'title') {
    lead.title = `Title ${++count}`
    await ok(server.admin.put(`/leads/${id}`, { title: lead.title }))
  } else if (kind === 'delete') {
    model.leads.delete(id)
    expect((await server.admin.delete(`/leads/${id}`)).status).toBe(200)
    // A lead that comes back to the person of the merge has the same person as without the move.
  } else if (!lead.wasMoved && lead.person !== person) {
    Object.assign(lead, { person, wasMoved: true })
    await ok(server.admin.put(`/leads/${id}`, { person_id: person }))
  }
}

const expected = ({ left, names, leads }: Model): Json => ({
  persons: left.toSorted((a, b) => a - b).map((id) => [id, names.get(id)]),
  leads: [...leads].map(([id, { person, title }]) => [id, person, title]).sort(([a], [b]) => Number(a) - Number(b)),
})

async function present({ names }: Model): Promise<Json> {
  const persons = (await server.admin.get(`${types.persons}?id=${[...names.keys()].join()}&sort=id`)).body.data
  const leads = (await server.admin.get('/leads?per_page=100&sort=id')).body.data
  return {
    persons: persons.map(({ id, name }: Json) => [id, name]),
    leads: leads.map(({ id, person_id, title }: Json) => [id, person_id, title]),
  }
}

/** Removes the records of a history, so that the next one is as fast. */
async function clear(): Promise<void> {
  for (const table of ['emails', 'activities', 'leads', 'quotes', 'persons', 'organizations'])
    await sql`delete from ${sql.table(table)}`.execute(server.store.db)
  for (const table of ['unique_values', 'events', 'archives'])
    await sql`delete from ${sql.table(table)}`.execute(server.store.db)
}
