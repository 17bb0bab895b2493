// Lists of values that are longer than the parameters of a statement.
import { sql } from 'kysely'
import { beforeAll, describe, expect, it } from 'vitest'
import { isIn } from '../../../db/long-lists.ts'
import { isPostgres } from '../../support/engine.ts'
import { useSharedServer } from '../../support/using.ts'

const most = 70_000
const ids = Array.from({ length: most }, (_, index) => index + 1)
const names = ids.map((id) => `Name ${id}, "quoted" \\ 'twice'`)

const server = useSharedServer()
beforeAll(async () => {
  const made = await server.admin.post('/tags', { name: names[41_999] ?? '', color: '#112233' })
  expect(made.status, made.text).toBe(201)
})

describe('a list of 70,000 values', () => {
  it('selects by number and by text, in and not in', async () => {
    const { db } = server.store
    const all = await db.selectFrom('tags').select('id').execute()
    const count = async (change: (rows: ReturnType<typeof tags>) => ReturnType<typeof tags>): Promise<number> =>
      (await change(tags()).execute()).length
    const tags = () => db.selectFrom('tags').select(['id', 'name'])
    expect(await count((rows) => rows.where('id', 'in', ids))).toBe(all.length)
    expect(await count((rows) => rows.where('id', 'not in', ids))).toBe(0)
    expect(await count((rows) => rows.where('name', 'in', names))).toBe(1)
    expect(await count((rows) => rows.where('name', 'not in', names))).toBe(all.length - 1)
    expect(await count((rows) => rows.where(isIn(sql.ref('tags.id'), ids)))).toBe(all.length)
    expect(await count((rows) => rows.where((eb) => eb.not(isIn(sql.ref('tags.id'), ids))))).toBe(0)
  })

  it('changes and deletes rows', async () => {
    const { db } = server.store
    await db.updateTable('tags').set({ color: '#445566' }).where('name', 'in', names).execute()
    const changed = db.selectFrom('tags').select('id').where('color', '=', '#445566')
    expect(await changed.execute()).toHaveLength(1)
    await db.deleteFrom('tags').where('name', 'in', names).execute()
    expect(await changed.execute()).toHaveLength(0)
  })
})

describe('deleteTag', () => {
  // One write for each record takes a minute on PostgreSQL.
  const isRun = !isPostgres || process.env.ACCORD_TEST_FULL === '1'
  it.runIf(isRun)(
    'detaches a tag from more records than a statement has parameters',
    { timeout: 240_000 },
    async () => {
      const { db } = server.store
      const { id } = (await server.admin.post('/tags', { name: 'Newsletter', color: '#112233' })).body.data
      const rows = server.store.dialect.name === 'sqlite' ? 33_000 : 66_000
      const numbers = sql`with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < ${rows})`
      const at = '2026-01-01T00:00:00.000Z'
      await sql`insert into organizations (name, name_key, created_at, updated_at)
      ${numbers} select 'Many ' || n, 'many ' || n, ${at}, ${at} from numbers`.execute(db)
      await sql`insert into organization_tags (organization_id, tag_id)
      select id, ${id} from organizations where name_key like 'many %'`.execute(db)
      const deleted = await server.admin.delete(`/tags/${id}`)
      expect(deleted.status, deleted.text).toBe(202)
      await server.work()
      expect((await server.admin.get(`/tags/${id}`)).status).toBe(404)
      expect(await db.selectFrom('organization_tags').select('tag_id').where('tag_id', '=', id).execute()).toEqual([])
    },
  )
})
