// The query plans of lists: each filter and sort key of the contract must use an index, so that a
// list of a million records is as fast as one of ten thousand. Exceptions are listed here with
// their reasons.
import { sql } from 'kysely'
import { beforeAll, describe, expect, it } from 'vitest'
import { start } from '../support/app.ts'
import { fact, parametersOf, sample } from '../support/schema.ts'
import { statementsOf } from '../support/statements.ts'
import { useSharedServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

/** The tables of lists that can become large. All other lists contain settings. */
const tables = {
  listLeads: 'leads',
  listPersons: 'persons',
  listOrganizations: 'organizations',
  listQuotes: 'quotes',
  listProducts: 'products',
  listActivities: 'activities',
  listEmails: 'emails',
} as const

type List = keyof typeof tables
const lists = Object.keys(tables) as List[]

/** Sort keys of another table, whose index is scanned (kernel/resource/access-paths.test.ts). */
const sortedElsewhere: Partial<Record<List, string[]>> = {
  listLeads: ['person_name', 'user_name', 'stage_sort_order'],
  listPersons: ['organization_name'],
}

/** Filters whose count reads every record. */
const looked: Partial<Record<List, string[]>> = {
  // Depends on age, status and pipeline. Such an index would mislead the planner when it has few
  // statistics.
  listLeads: ['is_rotten'],
  // A part of the address that has few distinct values.
  listOrganizations: ['country'],
  listEmails: ['has_attachments'],
}

const server = useSharedServer()
beforeAll(async () => {
  const { db } = server.store
  for (const id of [1, 2, 3]) {
    const stamps = { created_at: start, updated_at: start }
    await db
      .insertInto('persons')
      .values({ name: `P${id}`, name_key: `p${id}`, emails: '[]', job_title: null, ...stamps })
      .execute()
    const title = { title: `L${id}`, title_key: `l${id}`, lead_value: id }
    const stage = { lead_pipeline_id: 1, lead_pipeline_stage_id: 1, lead_source_id: 1, lead_type_id: 1 }
    await db
      .insertInto('leads')
      .values({ ...title, ...stage, status: 1, stage_changed_at: start, ...stamps })
      .execute()
  }
})

interface Plan {
  statement: string
  steps: string[]
}

/** Returns the plans of the statements that find or count records of the list. */
async function plansOf(list: List, query: string): Promise<Plan[]> {
  const statements = await statementsOf(async () => {
    const { status, text } = await server.admin.get(`${fact(list).path.replace('/api/admin', '')}?${query}`)
    expect(status, text).toBe(200)
  })
  const finding = new RegExp(
    `^select ("${tables[list]}"\\."id" as "id"|count\\(\\*\\) as "total").* from "${tables[list]}"`,
  )
  const found = statements.filter((statement) => finding.test(statement))
  expect(found.length, statements.join('\n')).toBeGreaterThan(0)
  return Promise.all(found.map(planOf))
}

async function planOf(statement: string): Promise<Plan> {
  const text = statement.replaceAll('?', 'null')
  const { rows } = await sql.raw<{ detail: string }>(`explain query plan ${text}`).execute(server.store.db)
  return { statement, steps: rows.map(({ detail }) => detail) }
}

const told = ({ statement, steps }: Plan): string => `${statement}\n  ${steps.join('\n  ')}`
const sorts = ({ steps }: Plan): boolean => steps.some((step) => step.includes('TEMP B-TREE FOR ORDER BY'))
/** Returns whether the plan scans the whole table. */
const scans = (list: List, { steps }: Plan): boolean => steps.includes(`SCAN ${tables[list]}`)

const sortKeys = (list: List): string[] => {
  const schema = parametersOf(list, 'query').find(({ name }) => name === 'sort')?.schema
  const keys = (schema?.items?.enum ?? []) as string[]
  return keys.filter((key) => !key.startsWith('-') && !sortedElsewhere[list]?.includes(key))
}

/** Returns the filters, each with a valid value. */
const filters = (list: List): [name: string, value: string][] =>
  parametersOf(list, 'query')
    .filter(
      ({ name }) => !/^(page|per_page|count|cursor|sort|include|fields|q|view|custom_attributes)$|\[not\]$/.test(name),
    )
    .map(({ name, schema }) => [name, [sample(schema)].flat().join()])

describe.each(lists)('%s', (list) => {
  it('is in the order of an index by default, by cursor, and by each sort key, in both directions', async () => {
    const keys = sortKeys(list)
    expect(keys).toContain('created_at')
    for (const sort of ['', ...keys.flatMap((key) => [`&sort=${key}`, `&sort=-${key}`])])
      for (const query of [`count=none${sort}`, `cursor=${sort}`])
        for (const plan of await plansOf(list, query)) {
          expect(sorts(plan), told(plan)).toBe(false)
          if (!/sort=-?id$|^$/.test(sort)) expect(scans(list, plan), told(plan)).toBe(false)
        }
  })

  it('is counted in an index, whatever one filter asks for', async () => {
    const names = filters(list)
    expect(names.map(([name]) => name)).toContain('created_at[gte]')
    for (const [name, value] of names) {
      const plans = await plansOf(list, `${name}=${encodeURIComponent(value)}`)
      const [plan] = plans.filter(({ statement }) => statement.includes('count(*)'))
      if (plan && !looked[list]?.includes(name.split('[')[0] ?? ''))
        expect(scans(list, plan), `${name}\n${told(plan)}`).toBe(false)
    }
  })

  it('is counted without the tables it only shows', async () => {
    const [plan] = (await plansOf(list, 'per_page=1')).filter(({ statement }) => statement.includes('count(*)'))
    expect(plan?.statement).not.toContain(' join ')
  })
})

describe('the counts of a list', () => {
  const counts = {
    '/contacts/organizations': ['persons_organization_id_index', 'leads_person_id_index'],
    '/contacts/persons': ['leads_person_id_index', 'quotes_person_id_index'],
    '/settings/warehouses': ['product_inventories_warehouse_id_index'],
  }

  it.each(Object.entries(counts))('of %s read only an index, for a limited user, too', async (path, indexes) => {
    const limited = await addUser(server, `Counting ${path}`, { view: 'individual' })
    for (const caller of [server.admin, limited]) {
      const statements = await statementsOf(async () => {
        // By id, so that the records are read even if the caller sees none.
        expect((await caller.get(`${path}?id=1`)).status).toBe(200)
        expect([200, 404]).toContain((await caller.get(`${path}/1`)).status)
      })
      const found = statements.filter((statement) => /_count"/.test(statement))
      expect(found.length).toBeGreaterThan(0)
      for (const plan of await Promise.all(found.map(planOf)))
        for (const index of indexes) expect(told(plan)).toContain(`USING COVERING INDEX ${index} `)
    }
  })
})

describe.each(['listLeads', 'listPersons'] as const)('%s by cursor', (list) => {
  it('goes on from where it was, however far that is', async () => {
    for (const sort of sortKeys(list).flatMap((key) => [key, `-${key}`])) {
      const path = fact(list).path.replace('/api/admin', '')
      const first = await server.admin.get(`${path}?per_page=1&sort=${sort}&cursor=`)
      const cursor = encodeURIComponent(first.body.meta.next_cursor)
      const plans = await plansOf(list, `per_page=1&sort=${sort}&cursor=${cursor}`)
      for (const plan of plans) {
        expect(sorts(plan), told(plan)).toBe(false)
        expect(plan.steps[0], told(plan)).toMatch(new RegExp(`^SEARCH ${tables[list]} `))
      }
    }
  })
})

describe.each(lists)('%s', (list) => {
  it('reads what it shows of a record, and what hangs on it, by keys and indexes', async () => {
    const statements = await statementsOf(() => server.admin.get(fact(list).path.replace('/api/admin', '')))
    const shown = statements.filter((statement) => statement.includes(`"${tables[list]}"."id" in (`))
    for (const statement of shown) {
      const { rows } = await sql
        .raw<{ detail: string }>(`explain query plan ${statement.replaceAll('?', '1')}`)
        .execute(server.store.db)
      const steps = rows.map(({ detail }) => detail)
      // `agg` is a materialized subquery, so its scan is allowed.
      const scanned = steps.filter((step) => /^SCAN (?!agg$)/.test(step))
      expect(scanned, `${statement}\n  ${steps.join('\n  ')}`).toEqual([])
    }
    if (['listLeads', 'listPersons'].includes(list)) expect(shown).not.toEqual([])
  })
})

describe('q', () => {
  it('looks into candidates of the index of texts only, where a word has three letters', async () => {
    for (const list of lists) {
      const path = fact(list).path.replace('/api/admin', '')
      const statements = await statementsOf(() => server.admin.get(`${path}?q=abc`))
      const counting = statements.find((statement) => statement.includes('count(*)')) ?? ''
      const { rows } = await sql
        .raw<{ detail: string }>(`explain query plan ${counting.replaceAll('?', "'abc'")}`)
        .execute(server.store.db)
      const steps = rows.map(({ detail }) => detail)
      expect(steps, counting).toContain(`SEARCH ${tables[list]} USING INTEGER PRIMARY KEY (rowid=?)`)
      expect(steps, counting).not.toContain(`SCAN ${tables[list]}`)
    }
  })
})

describe('the search for duplicates of a new record', () => {
  it.each([
    ['one key', { emails: [{ value: 'one@example.com' }] }],
    ['two kinds of keys', { emails: [{ value: 'two@example.com' }], contact_numbers: [{ value: '+49 30 1234567' }] }],
  ])('begins at the keys of that record: %s', async (_what, body) => {
    const statements = await statementsOf(async () => {
      expect((await server.admin.post('/contacts/persons', { name: 'Ada', ...body })).status).toBe(201)
    })
    const found = statements.filter((each) => each.startsWith('select distinct "other"."person_id"'))
    expect(found).toHaveLength(1)
    const { steps } = await planOf(found[0]?.replaceAll('?', "'a'") ?? '')
    expect(steps[0]).toMatch(/^SEARCH own .*\(person_id=\?/)
  })
})
