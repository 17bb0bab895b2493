// Every list, the board and the search against an oracle: the same records in the same order,
// by page number and by cursor, whichever way the server finds them.
import { beforeAll, describe, expect, it } from 'vitest'
import { type Random, randomOf } from '../../fuzz/random.ts'
import type { Caller } from '../../support/app.ts'
import { isPostgres } from '../../support/engine.ts'
import { useSharedServer } from '../../support/using.ts'
import { addUser } from '../../support/viewers.ts'
import { type AnyList, inOrder, isHit, listsOf, matches, type Viewer } from './list-oracle.ts'
import { insertRecords, type LeadRecord, makeRecords, type StageRecord } from './many-records.ts'

const server = useSharedServer()

/** Another seed makes other records and queries. */
const seed = 1
/** The number of queries of each list, per user. */
const rounds = isPostgres ? 2 : 4
/** The highest number of counted matches of `q`. */
const maxTotal = 1_000

interface Someone extends Viewer {
  name: string
  caller: Caller
}

let people: Someone[]
let lists: AnyList[]
let stages: StageRecord[]

const listAt = (path: string): AnyList => lists.find((list) => list.path === path) as AnyList

async function addAttribute(body: object): Promise<any> {
  const reply = await server.admin.post('/settings/attributes', { entity_type: 'leads', ...body })
  expect(reply.status, reply.text).toBe(201)
  return reply.body.data
}

beforeAll(async () => {
  await addAttribute({ code: 'note', name: 'Note', type: 'text' })
  await addAttribute({ code: 'note', name: 'Note', type: 'text', entity_type: 'persons' })
  await addAttribute({ code: 'budget', name: 'Budget', type: 'price' })
  const size = await addAttribute({
    code: 'size',
    name: 'Size',
    type: 'select',
    options: ['S', 'M', 'L'].map((name) => ({ name })),
  })
  const pipeline = await server.admin.post('/pipelines', {
    name: 'Partners',
    stages: [{ name: 'Talk', probability: 50 }],
  })
  expect(pipeline.status, pipeline.text).toBe(201)
  const none = await addUser(server, 'None', { view: 'individual' })
  const few = await addUser(server, 'Few', {
    view: 'individual',
    permissions: [
      'leads',
      'contacts.persons',
      'contacts.organizations',
      'quotes',
      'products',
      'activities',
      'mail',
      'mail.inbox',
      'mail.sent',
    ],
  })
  const many = await addUser(server, 'Many', { view: 'individual' })
  const member = await addUser(server, 'Member', { view: 'group', group: 'Team' })
  const other = await addUser(server, 'Other', { view: 'group', group: 'Team' })
  stages = await server.store.db
    .selectFrom('lead_pipeline_stages')
    .select(['id', 'lead_pipeline_id as pipeline_id', 'sort_order'])
    .orderBy('sort_order')
    .execute()
  const owners = [
    ...Array(60).fill(many.id),
    ...Array(25).fill(null),
    ...Array(12).fill(other.id),
    ...Array(15).fill(1),
    member.id,
    few.id,
  ]
  const sizes: number[] = size.options.map(({ id }: any) => id)
  const records = makeRecords(randomOf(seed, 0), { owners, stages, sizes })
  await insertRecords(server, records)
  const names = await server.store.db.selectFrom('users').select(['id', 'name']).execute()
  lists = listsOf({ records, users: new Map(names.map(({ id, name }) => [id, name])), stages, sizes })
  const limited = (...ids: number[]) => ({ owners: new Set(ids), folders: null })
  people = [
    { name: 'Admin', caller: server.admin, owners: null, folders: null },
    { name: 'None', caller: none, ...limited(none.id) },
    { name: 'Few', caller: few, ...limited(few.id), folders: new Set(['inbox', 'sent']) },
    { name: 'Many', caller: many, ...limited(many.id) },
    { name: 'Member', caller: member, ...limited(member.id, other.id) },
  ]
}, 60_000)

const words = [
  'alpha',
  'lph',
  'al',
  'elan',
  'ONEIL',
  'strasse',
  'harbor alpine',
  'alpha zebra',
  'quartz',
  'ra',
  'ij',
  '東京',
  '京',
  '🚀',
  '100%',
  'a_b',
  '"quoted"',
  'wide',
  'n1',
  'n12',
  'hidden',
  'hidden3 alpha',
  'mail.example',
  'p1',
  'k',
  '%',
  'nothing',
]

interface Query {
  sort: string[]
  q: string | null
  filters: { text: string; test: (row: any) => boolean }[]
}

function queryFrom(random: Random, list: AnyList): Query {
  const names = Object.keys(list.sorts)
  const sort = random.chance(0.1)
    ? []
    : [...new Set(Array.from({ length: random.whole(1, 2) }, () => random.pick(names)))].map((name) =>
        random.chance(0.5) ? name : `-${name}`,
      )
  const filters = list.filters(random)
  const chosen = Array.from({ length: random.few(2) }, () => random.pick(filters))
  const byParameter = new Map(chosen.map((filter) => [filter.text.replace(/=.*/, ''), filter]))
  return { sort, q: random.chance(0.4) ? random.pick(words) : null, filters: [...byParameter.values()] }
}

const textOf = ({ sort, q, filters }: Query): string =>
  [
    ...(sort.length > 0 ? [`sort=${sort.join()}`] : []),
    ...(q === null ? [] : [`q=${encodeURIComponent(q)}`]),
    ...filters.map(({ text }) => text),
  ].join('&')

/** Returns the ids that the list shows, in order. */
function expected(list: AnyList, viewer: Viewer, { sort, q, filters }: Query): number[] {
  const rows = list.rows.filter(
    (row) =>
      list.sees(viewer, row) &&
      filters.every(({ test }) => test(row)) &&
      (q === null || matches(q, list.texts(viewer, row))),
  )
  const names = sort.length > 0 ? sort : ['-id']
  return inOrder(rows, names, list.sorts).map(({ id }) => id)
}

interface Shown {
  ids: number[]
  links: any
  meta: any
}

async function read(caller: Caller, url: string): Promise<Shown> {
  const { status, body, text } = await caller.get(url)
  expect(status, `${url} ${text}`).toBe(200)
  return { ids: body.data.map(({ id }: any) => id), links: body.links, meta: body.meta }
}

const pathOf = (link: string): string => link.replace(/^.*\/api\/admin/, '')

/** Follows the links of pages from this URL and returns the pages. */
async function follow(caller: Caller, url: string, rel: 'next' | 'prev', most: number): Promise<Shown[]> {
  const pages: Shown[] = []
  for (let at: string | null = url; at !== null && pages.length <= most; ) {
    const page = await read(caller, at)
    pages.push(page)
    at = page.links[rel] === null ? null : pathOf(page.links[rel])
  }
  return pages
}

const idsOf = (pages: readonly Shown[]): number[] => pages.flatMap(({ ids }) => ids)

/** Reads the list of the query in every way and compares it with the oracle. */
async function check(list: AnyList, { name, caller, ...viewer }: Someone, query: Query, size: number): Promise<void> {
  const ids = expected(list, viewer, query)
  const base = `${list.path}?${textOf(query)}&fields=id&per_page=${size}`
  const said = `${name} ${base}`
  const most = Math.ceil(ids.length / size) + 1
  const isExact =
    ids.length <= maxTotal || query.q === null || (viewer.owners !== null && list.hasSight && !hasIdFilter(query))
  const total = isExact ? ids.length : maxTotal
  const byNumber = await follow(caller, base, 'next', most)
  expect(idsOf(byNumber), said).toEqual(ids)
  const last = Math.max(1, Math.ceil(ids.length / size))
  expect(byNumber, said).toHaveLength(last)
  for (const [index, { meta, links, ids: shown }] of byNumber.entries()) {
    expect(meta, said).toMatchObject({
      current_page: index + 1,
      total,
      is_total_exact: isExact,
      last_page: isExact ? last : null,
      from: shown.length > 0 ? index * size + 1 : null,
      to: shown.length > 0 ? index * size + shown.length : null,
    })
    expect(links.last === null, said).toBe(!isExact)
    expect(links.prev === null, said).toBe(index === 0)
  }
  const uncounted = await follow(caller, `${base}&count=none`, 'next', most)
  expect(idsOf(uncounted), said).toEqual(ids)
  expect((await read(caller, `${base}&page=${last + 1}`)).ids, said).toEqual([])
  const forwards = await follow(caller, `${base}&cursor=`, 'next', most)
  expect(idsOf(forwards), said).toEqual(ids)
  const end = forwards.at(-1) as Shown
  if (end.links.prev === null) return
  const backwards = await follow(caller, pathOf(end.links.prev), 'prev', most)
  expect([...idsOf(backwards.reverse()), ...end.ids], said).toEqual(ids)
}

const hasIdFilter = ({ filters }: Query): boolean =>
  filters.some(({ text }) => /^([a-z_]+_)?id=/.test(text) && !text.startsWith('user_id='))

describe('Lists', () => {
  for (const path of [
    '/leads',
    '/contacts/persons',
    '/contacts/organizations',
    '/quotes',
    '/products',
    '/activities',
    '/emails',
  ])
    it(`${path} shows what the oracle expects`, { timeout: 600_000 }, async () => {
      const random = randomOf(seed, path.length)
      const list = listAt(path)
      for (const someone of people)
        for (let round = 0; round < rounds; round++) {
          const query = queryFrom(random, list)
          const count = expected(list, someone, query).length
          await check(list, someone, query, count > 300 ? 100 : Math.max(1, random.whole(Math.ceil(count / 8), 60)))
        }
    })
})

describe('The board', () => {
  it('shows what the oracle expects in each stage', { timeout: 600_000 }, async () => {
    const random = randomOf(seed, 1000)
    const list = listAt('/leads')
    for (const someone of people)
      for (let round = 0; round < rounds * 3; round++) {
        const query = queryFrom(random, list)
        query.filters = query.filters.filter(({ text }) => !text.startsWith('lead_pipeline'))
        const pipeline = random.pick(stages).pipeline_id
        const [page, size] = [random.whole(1, 3), random.whole(1, 30)]
        const url = `/leads/kanban?pipeline_id=${pipeline}&page=${page}&per_page=${size}&${textOf(query)}`
        const { status, body, text } = await someone.caller.get(url)
        const said = `${someone.name} ${url}`
        expect(status, `${said} ${text}`).toBe(200)
        const all = expected(list, someone, query).map((id) => list.rows[id - 1] as LeadRecord)
        const on = all.filter(({ pipeline_id }) => pipeline_id === pipeline)
        const isCounted = query.q === null || on.length <= maxTotal
        const sum = (rows: LeadRecord[]) => rows.reduce((sum, row) => sum + row.lead_value, 0) / 10_000
        expect(body.meta, said).toEqual(
          isCounted ? { total: on.length, lead_value: sum(on) } : { total: null, lead_value: null },
        )
        expect(body.data.map(({ id }: any) => id)).toEqual(
          stages.filter((stage) => stage.pipeline_id === pipeline).map(({ id }) => id),
        )
        for (const { id, count, lead_value, leads } of body.data) {
          const inStage = on.filter(({ stage_id }) => stage_id === id)
          expect([count, lead_value], said).toEqual(isCounted ? [inStage.length, sum(inStage)] : [null, null])
          expect(
            leads.data.map((each: any) => each.id),
            `${said} stage ${id}`,
          ).toEqual(inStage.slice((page - 1) * size, page * size).map((each) => each.id))
        }
      }
  })
})

describe('The search', () => {
  it('finds the records that the oracle expects', { timeout: 600_000 }, async () => {
    for (const { name, caller, ...viewer } of people)
      for (const q of [
        'zebra quartz',
        'zeb kilo',
        '東京 ij',
        'n12',
        'hidden3 alpha',
        'p77',
        'nothing',
        'strasse wide',
      ]) {
        const hits = lists.flatMap((list) =>
          list.rows
            .filter((row) => list.sees(viewer, row) && isHit(q, list.texts(viewer, row)))
            .map(({ id }) => `${list.path.split('/').at(-1)} ${id}`),
        )
        const { status, body, text } = await caller.get(`/search?per_page=100&q=${encodeURIComponent(q)}`)
        expect(status, text).toBe(200)
        const found: string[] = body.data.map(({ type, id }: any) => `${type} ${id}`)
        const said = `${name} ${q}`
        expect(found, said).toHaveLength(Math.min(100, hits.length))
        expect(hits, said).toEqual(expect.arrayContaining(found))
      }
  })
})
