// A canary in each text of the records that a caller must not see: no reply of a reading operation
// may contain one. The operations, their expanding parameters and formats come from the contract;
// the routes of version 1 come from its table. The caller has every permission but sees only own
// records, of which there are none.
import { sql } from 'kysely'
import { beforeAll, describe, expect, it } from 'vitest'
import { rows } from '../../src/http/compat-v1/rows.ts'
import { facts, follow, parametersOf } from '../support/schema.ts'
import { give, people, scopes } from './matrix.scope.ts'
import { keep } from './matrix.ts'
import { urlOf } from './support.ts'
import { useWorld } from './use-world.ts'

const canary = 'qwxcanary'
/** The beginning of the canaries. A reply may repeat it, as in the links of a page. */
const searched = 'qwx'

const scoped = ['leads', 'persons', 'organizations', 'quotes', 'activities', 'emails', 'files']
/** The columns with texts that people write. A key column has the normalized text. */
const texts =
  /^(title|name|subject|description|comment|location|job_title|lost_reason|html|text_body|from_name)(_key)?$/

/** All users who may see imports see the names of their files. */
const notOfImports = sql`id not in (select file_id from imports where file_id is not null)`

const world = useWorld()
let token: string
let planted = 0

beforeAll(async () => {
  const { store } = world.server
  const who = await people(world)
  token = await who.seeing('individual')
  await give(world, who.outsider)
  await sql`update files set user_id = ${who.outsider}`.execute(store.db)
  for (const entity of scoped) {
    const table = scopes[entity]?.table ?? entity
    const found = (await store.db.introspection.getTables()).find(({ name }) => name === table)
    for (const { name } of found?.columns ?? []) {
      if (!texts.test(name)) continue
      const text = `${canary} ${entity} ${name} `
      const { numAffectedRows } = await sql`update ${sql.table(table)} set ${sql.ref(name)} = ${text} || id
        where ${entity === 'files' ? notOfImports : sql`1 = 1`}`.execute(store.db)
      planted += Number(numAffectedRows ?? 0)
    }
  }
  // The log and the archives have the same texts.
  for (const [table, column] of [
    ['events', 'before'],
    ['events', 'after'],
    ['archives', 'before'],
  ] as const)
    await sql`update ${sql.table(table)} set ${sql.ref(column)} =
      replace(replace(${sql.ref(column)}, '"title":"', '"title":"qwxcanary '), '"name":"', '"name":"qwxcanary ')
      where entity_type in (${sql.join(scoped)})`.execute(store.db)
  await world.server.app.services.searchIndex.rebuildOnline(store)
  await keep(world)
}, 120_000)

/** Sends a request and returns a finding if the reply has a canary. */
async function ask(url: string, headers: Record<string, string> = {}): Promise<string[]> {
  const all = { accept: 'application/json', ...headers, authorization: `Bearer ${token}` }
  const reply = await world.server.inject({ method: 'GET', url, headers: all })
  expect(reply.statusCode, url).toBeLessThan(500)
  const said = `${JSON.stringify(reply.headers)}\n${reply.body}`
  const at = said.indexOf(canary)
  return at < 0 ? [] : [`${url} ${headers.accept ?? ''}: …${said.slice(at, at + 60)}`]
}

/** Returns the query strings to try: each expanding parameter, each format, a search and a sort. */
function queriesOf(id: string): string[] {
  const enumOf = (name: string): string[] => {
    const schema = parametersOf(id, 'query').find((each) => each.name === name)?.schema
    return ((follow(schema?.items ?? schema) as { enum?: unknown[] } | undefined)?.enum ?? []).map(String)
  }
  const names = new Set(parametersOf(id, 'query').map(({ name }) => name))
  const includes = enumOf('include')
  const chunks = Array.from({ length: Math.ceil(includes.length / 5) }, (_, at) => includes.slice(at * 5, at * 5 + 5))
  return [
    '',
    ...chunks.map((some) => `include=${some.join()}`),
    ...enumOf('format')
      .filter((format) => format !== 'xlsx')
      .map((format) => `format=${format}`),
    ...(names.has('q') ? [`q=${searched}`] : []),
    ...(names.has('query') ? [`query=${searched}`] : []),
    ...enumOf('sort').map((key) => `sort=${encodeURIComponent(key)}`),
    ...(names.has('count') ? ['count=exact'] : []),
  ]
}

describe('a canary in records that the caller must not see', () => {
  it('is planted', () => {
    expect(planted).toBeGreaterThan(40)
  })

  it('is in no reply of a reading operation, whatever it is asked to include', { timeout: 120_000 }, async () => {
    const reading = facts.filter(([, { method, servedBy }]) => method === 'get' && servedBy === 'handler')
    const findings: string[] = []
    let asked = 0
    for (const [id, { path, produces }] of reading) {
      const url = urlOf(world, id)
      for (const query of queriesOf(id)) {
        findings.push(...(await ask(query === '' ? url : `${url}?${query}`)))
        asked++
      }
      if (path.includes('/reports/') || produces.includes('image/svg+xml'))
        findings.push(...(await ask(url, { accept: 'image/svg+xml' })))
    }
    expect(asked).toBeGreaterThan(800)
    expect(findings).toEqual([])
  })

  it('is in no reply of version 1', async () => {
    const idOf = (segment: string): number => world.main[segment === 'mails' ? 'emails' : segment] ?? 1
    const findings: string[] = []
    for (const { method, path } of rows.filter((row) => row.method === 'GET')) {
      const filled = path
        .split('/')
        .map((part, at, all) => (part.startsWith('{') ? String(idOf(all[at - 1] ?? '')) : part))
        .join('/')
      for (const query of ['', `?search=${searched}`, `?query=${searched}`, `?limit=100&sort=id&order=asc`])
        findings.push(...(await ask(`/api/v1${filled}${query}`)))
      expect(method).toBe('GET')
    }
    expect(findings).toEqual([])
  })

  it('is found by a caller who may see it', async () => {
    const { body } = await world.server.admin.get(`/leads?q=${searched}`)
    expect(JSON.stringify(body)).toContain(canary)
  })
})
