// What the schema does by itself is told by no statement, so it must not change what is kept of the vocabulary (`Store.vocabulary`).
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { migrate } from '../../db/migrate.ts'
import { isReferenceTable, vocabulary } from '../../db/reference-tables.ts'
import { openStore } from '../../db/store.ts'

const store = openStore('sqlite::memory:')
beforeAll(() => migrate(store))
afterAll(() => store.close())

describe('a table of the vocabulary', () => {
  it('is written to by no trigger', async () => {
    const { rows } = await sql<{ name: string; sql: string }>`
      select name, sql from sqlite_schema where type = 'trigger'`.execute(store.db)
    const target =
      /\b(?:insert\s+(?:or\s+\w+\s+)?into|replace\s+into|update(?:\s+or\s+\w+)?|delete\s+from)\s+["[`]?(\w+)/gi
    const body = (text: string): string => text.slice(text.search(/\bbegin\b/i))
    const targets = rows.flatMap(({ sql: text }) => [...body(text).matchAll(target)].map(([, table]) => `${table}`))
    expect(targets).toContain('lead_totals')
    expect(targets.filter(isReferenceTable), 'Such a change is told by no statement: see Store.vocabulary').toEqual([])
  })

  /** What kept queries show of it must not follow from these columns. Whose a tag is nobody keeps who asks for what it is called. */
  const changedFromOutside = ['tags.user_id: set null with users']

  it('is changed by no key when a record of another kind goes, but in these columns that nobody keeps', async () => {
    const found: string[] = []
    for (const table of vocabulary) {
      const { rows } = await sql<{ from: string; table: string; on_update: string; on_delete: string }>`
        select * from pragma_foreign_key_list(${table})`.execute(store.db)
      for (const key of rows.filter((key) => !isReferenceTable(key.table)))
        for (const action of [key.on_update, key.on_delete])
          if (!['NO ACTION', 'RESTRICT'].includes(action))
            found.push(`${table}.${key.from}: ${action.toLowerCase()} with ${key.table}`)
    }
    expect(found).toEqual(changedFromOutside)
  })
})
