// Planner statistics must not become wrong when a table grows that was nearly empty at its
// analysis.

import { sql } from 'kysely'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { Sqlite } from '../../db/sqlite/driver.ts'
import { useNewServers } from '../support/using.ts'

const server = useNewServers()
afterEach(() => {
  vi.restoreAllMocks()
})

const stamp = '2026-03-01T09:30:00.000Z'

async function addTags(many: number): Promise<void> {
  const { db } = server.store
  const { rows } = await sql<{ last: number | null }>`select max(id) as last from tags`.execute(db)
  const from = rows[0]?.last ?? 0
  const names = Array.from({ length: many }, (_, at) => `tag ${from + at}`)
  const tags = names.map((name) => ({ name, name_key: name, color: '#123456', created_at: stamp, updated_at: stamp }))
  for (let at = 0; at < many; at += 500)
    await db
      .insertInto('tags')
      .values(tags.slice(at, at + 500))
      .execute()
}

async function planOfRange(): Promise<string> {
  const plan = sql<{ detail: string }>`explain query plan select name from tags where id > 1000 order by id limit 1`
  return (await plan.execute(server.store.db)).rows.map(({ detail }) => detail).join()
}

const noted = async () =>
  (await sql<{ tbl: string; stat: string }>`select tbl, stat from sqlite_stat1`.execute(server.store.db)).rows

describe('what is noted of sizes', () => {
  it('is forgotten of small tables, whose range is searched once they are large', async () => {
    const { db, dialect } = server.store
    await addTags(2)
    await sql`analyze`.execute(db)
    expect((await noted()).some(({ tbl }) => tbl === 'tags')).toBe(true)
    await dialect.updateStatistics(db)
    expect(await noted()).toEqual([])
    await addTags(3000)
    expect(await planOfRange()).toContain('SEARCH tags USING INTEGER PRIMARY KEY')
  })

  it('is kept of large ones', async () => {
    const { db, dialect } = server.store
    await addTags(3000)
    await sql`analyze`.execute(db)
    await dialect.updateStatistics(db)
    const kept = await noted()
    expect(new Set(kept.map(({ tbl }) => tbl))).toEqual(new Set(['tags']))
  })

  it('is noted table by table, of a part of the rows, and not of what full text keeps for itself', async () => {
    const { db, dialect } = server.store
    await addTags(3000)
    await sql`insert into search_index (entity_type, entity_id, title, subtitle, body) values ('leads', 1, 'a', '', '')`.execute(
      db,
    )
    const { rows: due } = await sql<{ optimize: string }>`pragma optimize(0xffff)`.execute(db)
    expect(due.flatMap(Object.values)).toContain('ANALYZE "main"."search_index_words_idx"')
    const prepared = vi.spyOn(Sqlite.prototype, 'prepare')
    await dialect.updateStatistics(db)
    const [limit, ...texts] = prepared.mock.calls.map(([text]) => text)
    expect(limit).toBe('pragma analysis_limit = 400')
    expect(texts).toContain('ANALYZE "main"."tags"')
    expect(texts.filter((text) => /pragma optimize$|search_index_\w+_/.test(text))).toEqual([])
  })

  it('is nothing before the first time', async () => {
    await expect(server.store.dialect.updateStatistics(server.store.db)).resolves.toBeUndefined()
  })
})
