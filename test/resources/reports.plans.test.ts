// The query plans of reports on SQLite: each reads only the index of its period and no lead or row
// of the ledger, with and without the statistics of a large table. The report of all open leads
// reads kept totals.
import { sql } from 'kysely'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Caller } from '../support/app.ts'
import { isPostgres } from '../support/engine.ts'
import { statementsOf } from '../support/statements.ts'
import { useSharedServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const server = useSharedServer()

let limited: Caller
beforeAll(async () => {
  limited = await addUser(server, 'Limited', { view: 'individual' })
})

const indexOf = {
  overview: ['created_at'],
  'revenue-stats': ['outcomes'],
  'total-leads': ['created_at', 'outcomes'],
  'revenue-by-sources': ['outcomes'],
  'revenue-by-types': ['outcomes'],
  'top-selling-products': ['outcomes'],
  'top-persons': ['outcomes'],
  'open-leads-by-stages': ['created_at'],
  forecast: ['expected_close_date'],
}

/** Returns how the report reads leads: the steps of its query plans that read them. */
async function readsOfLeads(path: string, caller: Caller = server.admin): Promise<string[]> {
  const statements = await statementsOf(async () => {
    const { status, text } = await caller.get(`/reports/${path}`)
    expect(status, text).toBe(200)
  })
  const found: string[] = []
  for (const statement of statements.filter((each) => /from "(leads|lead_outcomes)"/.test(each))) {
    const text = statement.replaceAll('?', 'null')
    const { rows } = await sql.raw<{ detail: string }>(`explain query plan ${text}`).execute(server.store.db)
    found.push(
      ...rows.map(({ detail }) => detail).filter((step) => /^(SEARCH|SCAN) (leads|lead_outcomes)\b/.test(step)),
    )
  }
  return [...new Set(found.map((step) => step.replace(/ \(.*/, '')))]
}

const covering = (column: string): string =>
  column === 'outcomes'
    ? 'SEARCH lead_outcomes USING COVERING INDEX lead_outcomes_report_index'
    : `SEARCH leads USING COVERING INDEX leads_${column}_id_index`

const check = () => {
  for (const query of ['', '&pipeline_id=1'])
    it.each(Object.entries(indexOf))(`%s${query} reads the index of its period`, async (name, columns) => {
      const steps = await readsOfLeads(`${name}?start=2024-01-01&end=2025-12-31${query}`)
      expect(steps).toEqual(columns.map(covering))
    })

  it.each(Object.entries(indexOf))('%s reads it or the own leads for a limited user', async (name, columns) => {
    const steps = await readsOfLeads(`${name}?start=2024-01-01&end=2025-12-31`, limited)
    const allowed = [...columns.map(covering), 'SEARCH leads USING INDEX leads_user_id_id_index']
    expect(allowed).toEqual(expect.arrayContaining(steps))
  })

  it('of all open leads reads none', async () => {
    expect(await readsOfLeads('open-leads-by-stages')).toEqual([])
  })
}

describe.runIf(!isPostgres)('a report', () => check())

describe.runIf(!isPostgres)('a report over 100,000 leads', () => {
  beforeAll(async () => {
    const { db } = server.store
    await sql`analyze`.execute(db)
    await sql`delete from sqlite_stat1`.execute(db)
    // As the nightly statistics find them in a table of 100,000 leads.
    const stats = {
      leads_created_at_id_index: '100000 1 1 1 1 1 1 1',
      leads_closed_at_id_index: '100000 4 1 1 1 1 1 1 1 1',
      leads_expected_close_date_id_index: '100000 110 1 1 1 1 1 1',
      leads_person_id_index: '100000 3',
      leads_lead_source_id_index: '100000 20000',
      leads_lead_type_id_index: '100000 50000',
      leads_lead_pipeline_id_id_index: '100000 100000 1',
      leads_lead_pipeline_stage_id_id_index: '100000 16667 1',
      leads_status_id_index: '100000 33334 1',
      leads_user_id_id_index: '100000 10000 1',
    }
    for (const [index, stat] of Object.entries(stats))
      await sql`insert into sqlite_stat1 (tbl, idx, stat) values ('leads', ${index}, ${stat})`.execute(db)
    await sql`analyze sqlite_schema`.execute(db)
  })
  check()
})
