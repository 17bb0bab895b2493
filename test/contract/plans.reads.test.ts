// The query plans of all reads of the contract, as an administrator and as a user who sees nothing.
// A read must not scan a large table, except to fill one page in the order of an index or to count
// an index. What follows from the number of records is bounded by the contract.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Sqlite } from '../../db/sqlite/driver.ts'
import { withFunctions } from '../../db/sqlite/functions.ts'
import { openStore } from '../../db/store.ts'
import { fillRows } from '../bench/fill.rows.ts'
import { readsOf } from '../bench/growth.requests.ts'
import { isPostgres } from '../support/engine.ts'
import { statementsOf } from '../support/statements.ts'
import { useSharedServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

/** So many that each list has more records than a page gathers and sorts. */
const leads = 2_400
/** A table with more rows than this counts as large. */
const large = 250

const folder = mkdtempSync(join(tmpdir(), 'accord-plans-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const server = useSharedServer({
  ...(!isPostgres && {
    open: (image) => {
      const file = join(folder, 'accord.db')
      writeFileSync(file, image)
      const database = withFunctions(new Sqlite(file))
      fillRows(database, leads, 'more', 6)
      database.close()
      return openStore(`sqlite:${file}`)
    },
  }),
})

/** The reads that may read all records, with the bound or the reason. */
const exceptions: Record<string, string> = {
  kanbanLeads: 'reads up to 5,000 leads of a board together, and sums up 30,000 that filters select',
}

let tables: Set<string>
beforeAll(async () => {
  if (isPostgres) return
  const { rows } = await sql<{ name: string }>`
    select name from sqlite_schema where type = 'table' and name not like 'sqlite%' and name not like 'search_index%'
  `.execute(server.store.db)
  tables = new Set()
  for (const { name } of rows) {
    const counted = await sql<{ n: number }>`select count(*) as n from ${sql.table(name)}`.execute(server.store.db)
    if ((counted.rows[0]?.n ?? 0) > large) tables.add(name)
  }
})

/** Returns the tables that the aliases of a statement stand for. */
function aliasesOf(statement: string): Map<string, string> {
  const found = statement.matchAll(/\b(?:from|join) "?(\w+)"?(?: as "?(\w+)"?)?/g)
  return new Map([...found].map(([, table = '', alias = table]) => [alias, table]))
}

const planOf = async (statement: string): Promise<string[]> => {
  const text = statement.replaceAll('?', 'null')
  const { rows } = await sql.raw<{ detail: string }>(`explain query plan ${text}`).execute(server.store.db)
  return rows.map(({ detail }) => detail)
}

const isCount = (statement: string): boolean => /^select count\(\*\) as "total" from /.test(statement)

/** Returns whether the plan reads all rows of a large table, apart from an index that it counts. */
async function isUnbounded(statement: string): Promise<string[] | null> {
  if (!/^(select|with)\b/.test(statement)) return null
  const steps = await planOf(statement)
  const aliases = aliasesOf(statement)
  const scanned = steps.filter((step) => {
    const [, alias = ''] = /^SCAN (\w+)/.exec(step) ?? []
    return tables.has(aliases.get(alias) ?? '')
  })
  if (scanned.length === 0 || isCount(statement)) return null
  // The leads of one person may be sorted by id.
  const isSorted = steps.some((step) => /USE TEMP B-TREE FOR (?!LAST TERM OF ).*(ORDER BY|DISTINCT)/.test(step))
  const isGrouped = steps.some((step) => step.includes('TEMP B-TREE FOR GROUP BY'))
  // A bounded number of rows may be grouped.
  const isBounded = isGrouped ? /limit \?\) as "\w+" group by/.test(statement) : / limit /.test(statement)
  return isBounded && !isSorted ? null : steps
}

describe.skipIf(isPostgres)('a read', () => {
  it('scans no large table, but to fill a page or to count an index', { timeout: 300_000 }, async () => {
    const newcomer = await addUser(server, 'newcomer', { view: 'individual' })
    const known = new Set<string>()
    const offences: string[] = []
    for (const [user, caller] of [
      ['administrator', server.admin],
      ['newcomer', newcomer],
    ] as const)
      for (const { operation, path } of readsOf(/./)) {
        const statements = await statementsOf(() => caller.get(path))
        for (const statement of new Set(statements)) {
          if (known.has(statement)) continue
          known.add(statement)
          const steps = await isUnbounded(statement)
          if (steps && exceptions[operation] === undefined)
            offences.push(`${user} ${path}\n  ${statement}\n    ${steps.join('\n    ')}`)
        }
      }
    expect(known.size).toBeGreaterThan(1_000)
    expect(offences).toEqual([])
  })
})
