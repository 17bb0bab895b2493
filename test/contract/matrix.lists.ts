// The visibility of records in lists, exports, boards, reports, search, lookups, calendars and the
// feed. There are records of the caller, a group mate, an outsider and no owner, each with a unique
// mark. In every view, no reply of a reading operation contains a mark of a hidden record, and
// totals and sums include only visible records.
import { beforeAll, describe, it } from 'vitest'
import { facts, follow, parametersOf } from '../support/schema.ts'
import { giveSome, type Owner, owners, type People, people, records, sees, type View, views } from './matrix.scope.ts'
import { type Cells, isFull, keep } from './matrix.ts'
import { request, send, type World } from './support.ts'

type Kind = (typeof records)[number]
type Set = Record<Kind, number>

/** Each owner's amount changes a different digit of a sum. */
const amounts: Record<Owner, number> = { caller: 1, mate: 10, outsider: 100, none: 1000 }
const mark = (owner: Owner): string => `mark${owner}`
const secret = (owner: Owner): string => `hush${owner}`

const reading = facts.filter(([, each]) => each.method === 'get' && !each.public && each.servedBy === 'handler')

/** The operations that list records of one of these kinds, directly or below another record. */
const pages = reading.flatMap(([id, { path, query }]): { id: string; kind: Kind }[] => {
  const kind = path.split('/').at(-1) as Kind
  return records.includes(kind) && 'id' in query && 'per_page' in query ? [{ id, kind }] : []
})

export function listCells(of: () => World, cells: Cells): void {
  let who: People
  /**
   * Records of the caller to which records of all owners are linked, so that lists below a record
   * can be tested.
   */
  let shared: Set
  const sets = {} as Record<Owner, Set>
  let pipeline: { id: number; stage: number }
  let world: World

  beforeAll(async () => {
    await of().server.rewind()
    who = await people(of())
    const make = maker(of())
    const stages = [{ name: 'First', code: 'first', probability: 50 }]
    const { id, stages: made } = await make('pipelines', { name: 'Matrix', rotten_days: 9, stages })
    pipeline = { id, stage: made[0].id }
    shared = await makeSet(make, { owner: who.caller, name: 'shared', hush: 'shared', amount: 0 })
    for (const owner of owners)
      sets[owner] = await makeSet(make, {
        owner: owner === 'none' ? null : who[owner],
        name: mark(owner),
        hush: secret(owner),
        amount: amounts[owner],
        below: shared,
      })
    world = { ...of(), main: { ...of().main, ...shared, users: who.caller } }
    await keep(world)
  })

  const maker =
    ({ server: { admin } }: World) =>
    async (path: string, body: object): Promise<any> => {
      const { status, body: made, text } = await admin.post(`/${path}`, body)
      if (status >= 300) throw new Error(`${path}: ${JSON.stringify(made?.errors ?? text)}`)
      return made.data
    }

  interface Wanted {
    owner: number | null
    name: string
    hush: string
    amount: number
    below?: Set
  }

  /**
   * Creates one record of each kind. Records of other owners are linked to the shared records,
   * except mails and activities, and quotes to the lead, which would then be visible.
   */
  async function makeSet(make: ReturnType<typeof maker>, { owner, name, hush, amount, below }: Wanted): Promise<Set> {
    const user_id = owner ?? 1
    const { main } = of()
    const emails = [{ value: `${name}@example.com` }]
    const street = { address: hush, country: 'GB', city: 'London', postcode: 'N1' }
    const { id: organizations } = await make('contacts/organizations', {
      name: `${name} org`,
      user_id,
      address: street,
    })
    const organization_id = below?.organizations ?? organizations
    const job_title = hush
    const { id: persons } = await make('contacts/persons', {
      name: `${name} person`,
      emails,
      user_id,
      organization_id,
      job_title,
    })
    const person_id = below?.persons ?? persons
    const sale = {
      lead_pipeline_id: pipeline.id,
      lead_pipeline_stage_id: pipeline.stage,
      expected_close_date: '2026-03-20',
    }
    const lead = { title: `${name} lead`, description: hush, lead_value: amount, user_id, person_id, ...sale }
    const products = [{ product_id: main.products, quantity: 1, price: amount }]
    const { id: leads } = await make('leads', { ...lead, products })
    const quote = {
      subject: `${name} quote`,
      description: hush,
      user_id,
      person_id,
      billing_address: street,
      expiry_date: '2026-12-31',
    }
    const { id: quotes } = await make('quotes', { ...quote, lead_id: leads, items: [] })
    if (below) await make(`quotes/${below.quotes}/leads`, { lead_id: leads })
    const links = {
      lead_ids: [leads],
      person_ids: [persons],
      product_ids: [main.products],
      warehouse_ids: [main.warehouses],
    }
    const times = { schedule_from: '2026-03-10T09:00:00Z', schedule_to: '2026-03-10T10:00:00Z', allow_overlap: true }
    const activity = { type: 'call', title: `${name} call`, comment: hush, user_id, ...times, ...links }
    const { id: activities } = await make('activities', activity)
    const mail = {
      subject: `${name} mail`,
      html: hush,
      to: ['a@example.com'],
      lead_id: leads,
      person_id: persons,
      is_draft: true,
    }
    const { id: mails } = await make('emails', mail)
    const made = { organizations, persons, leads, quotes, activities, emails: mails }
    await giveSome(of(), made, owner)
    return made
  }

  describe.each(views)('%s view', (view: View) => {
    const hidden = owners.filter((owner) => !sees(view, owner))
    const seen = owners.filter((owner) => sees(view, owner))
    const ask = async (path: string) => world.server.caller(await who.seeing(view)).get(path)

    // With the global view, no record is hidden.
    const isLimited = hidden.length > 0 && (isFull || view === 'individual')
    if (isLimited) it('shows no mark of a hidden record in any reply to any reading operation', hides)

    async function hides(): Promise<void> {
      const token = await who.seeing(view)
      for (const [id, { query }] of reading) {
        const more = new URLSearchParams()
        if ('per_page' in query && id !== 'searchRecords') more.set('per_page', '100')
        const includes = parametersOf(id, 'query').find(({ name }) => name === 'include')
        const names = (follow(includes?.schema.items).enum as string[] | undefined) ?? []
        for (const include of [[], ...chunks(names, 5)]) {
          if (include.length > 0) more.set('include', include.join(','))
          const { method, url } = request(world, id)
          const { text, headers, body } = await send(world, id, {
            method,
            url: more.size > 0 ? `${url}?${more}` : url,
            token,
          })
          const said = `${withoutRefs(body) ?? text}${JSON.stringify(headers)}`
          // The export of quotes contains references as text.
          const shows = (owner: Owner): boolean => id !== 'exportQuotes' && said.includes(mark(owner))
          const found = hidden.filter((owner) => shows(owner) || text.includes(secret(owner)))
          cells.check(`${id} with ${include.join(' and ') || 'nothing else'}, ${view} view`, found, [])
        }
      }
      cells.settle()
    }

    it.each(pages)('$id pages through what is in sight and counts nothing else', async ({ id, kind }) => {
      const token = await who.seeing(view)
      const { url } = request(world, id)
      const all = owners.map((owner) => sets[owner][kind])
      const isBelow = /\/\d+\//.test(url)
      // Mails are not linked to the shared records, and quotes not to the shared lead, because a
      // caller would see them with the record.
      const isUnlinked = isBelow && (kind === 'emails' || id === 'listLeadQuotes')
      const wanted = isUnlinked ? [] : seen.map((owner) => sets[owner][kind])
      const { status, body, text } = await send(world, id, {
        method: 'GET',
        url: `${url}?id=${all}&per_page=100&sort=id`,
        token,
      })
      const ids = body?.data?.map((each: { id: number }) => each.id)
      cells.check(`${id}, ${view} view`, status === 200 ? [ids, body.meta.total] : text, [wanted, wanted.length])
      const last = await send(world, id, { method: 'GET', url: `${url}?id=${all}&per_page=1&page=2`, token })
      cells.check(`${id}, pages, ${view} view`, last.body?.meta?.last_page, Math.max(1, wanted.length))
      cells.settle()
    })

    it('sums what is in sight, on the board, in pipelines and in reports', async () => {
      const sum = seen.reduce((total, owner) => total + amounts[owner], 0)
      const board = (await ask(`/leads/kanban?pipeline_id=${pipeline.id}`)).body.data
      const column = board.find((each: { id: number }) => each.id === pipeline.stage)
      // The shared lead also counts.
      cells.check(`board, ${view} view`, [column.lead_value, column.leads.meta.total], [sum, seen.length + 1])
      const stages = (await ask(`/pipelines/${pipeline.id}/stages`)).body.data
      cells.check(`stages sum, ${view} view`, stages.find((each: any) => each.id === pipeline.stage).lead_value, sum)
      const report = async (name: string) =>
        (await ask(`/reports/${name}?start=2026-03-01&end=2026-03-31&pipeline_id=${pipeline.id}`)).body.data.statistics
      cells.check(
        `open leads, ${view} view`,
        (await report('open-leads-by-stages')).map((each: any) => each.lead_value).reduce(add, 0),
        sum,
      )
      cells.check(
        `forecast, ${view} view`,
        (await report('forecast')).map((each: any) => each.lead_value).reduce(add, 0),
        sum,
      )
      const { total_leads } = await report('overview')
      cells.check(`leads of the period, ${view} view`, total_leads.current, seen.length + 1)
      cells.settle()
    })

    it.each(['leads', 'persons', 'organizations', 'quotes'])(
      'finds %s in sight by search and lookup, exports and the feed',
      async (kind) => {
        const one = kind as Kind
        const wanted = seen.map((owner) => sets[owner][one])
        for (const owner of owners) {
          const hits = (await ask(`/search?q=${mark(owner)}&types=${kind}`)).body.data?.map(
            (each: { id: number }) => each.id,
          )
          cells.check(`search for ${kind} of ${owner}, ${view} view`, hits, sees(view, owner) ? [sets[owner][one]] : [])
          const hushed = (await ask(`/search?q=${secret(owner)}&types=${kind}`)).body.data ?? []
          cells.check(
            `search for words of ${kind} of ${owner}, ${view} view`,
            hushed.length > 0 && !sees(view, owner),
            false,
          )
          const events = (await ask(`/events?entity_type=${kind}&entity_id=${sets[owner][one]}`)).body.data ?? []
          cells.check(`events of ${kind} of ${owner}, ${view} view`, events.length > 0, sees(view, owner))
        }
        const found = (await ask(`/settings/attribute-lookups/${kind}?per_page=100&q=mark`)).body.data
        if (found)
          cells.check(
            `lookup of ${kind}, ${view} view`,
            sorted(found.map((each: any) => each.id ?? each.value)),
            wanted,
          )
        const base = one === 'persons' || one === 'organizations' ? `/contacts/${kind}` : `/${kind}`
        const { text } = await ask(`${base}/export?id=${owners.map((owner) => sets[owner][one])}&format=csv`)
        const exported = owners.filter((owner) => text.includes(mark(owner)))
        cells.check(`export of ${kind}, ${view} view`, exported, seen)
        cells.settle()
      },
    )
  })
}

const add = (one: number, other: number): number => one + other
/**
 * Returns a reply without references, which may show the id and label of hidden records.
 */
function withoutRefs(body: unknown): string | undefined {
  if (body === undefined) return undefined
  const isRef = (value: unknown): boolean =>
    typeof value === 'object' && value !== null && ['id,title', 'id,subject'].includes(Object.keys(value).join())
  return JSON.stringify(body, (_key, value: unknown) => (isRef(value) ? undefined : value))
}

const sorted = (ids: number[]): number[] => [...ids].sort((one, other) => one - other)

const chunks = (names: readonly string[], size: number): string[][] =>
  names.length === 0 ? [] : [names.slice(0, size), ...chunks(names.slice(size), size)]
