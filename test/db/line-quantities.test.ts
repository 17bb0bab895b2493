// Migration 0055 with product lines of an existing installation, stored and archived.
import { type Kysely, sql } from 'kysely'
import { expect, it } from 'vitest'
import { migrate, migrations } from '../../db/migrate.ts'
import { openStore } from '../../db/store.ts'

it('quantities of an older database keep their value, in lines and in archives of deleted leads', async () => {
  const store = openStore('sqlite::memory:')
  const db = store.db as unknown as Kysely<unknown>
  const count = migrations.findIndex(({ name }) => name === '0055_line_quantities')
  expect(count).toBeGreaterThan(0)
  await migrate(store, migrations.slice(0, count))
  const run = (text: string) => sql.raw<Record<string, unknown>>(text).execute(db)
  await run('pragma foreign_keys = off')
  await run(`insert into lead_products (lead_id, name, sku, quantity, price, amount, created_at, updated_at)
    values (1, 'A', 'a', 3, 5, 15, 'now', 'now')`)
  const archived = (quantity: number) => [
    { table: 'leads', row: { id: 1, quantity: 7 } },
    { table: 'lead_products', row: { id: 1, quantity } },
  ]
  let event = 0
  const archive = (entity: string, rows: unknown) =>
    run(`insert into archives (event_id, entity_type, entity_id, rows, pointers, companions, created_at)
      values (${++event}, '${entity}', 1, '${JSON.stringify(rows)}', '[]', '[]', 'now')`)
  await archive('leads', archived(3))
  await archive('leads', [{ table: 'leads', row: { id: 2 } }])
  await archive('persons', archived(3))
  await migrate(store, migrations.slice(0, count + 1))
  expect((await run('select quantity from lead_products')).rows).toEqual([{ quantity: 30_000 }])
  const { rows } = await run('select rows from archives order by id')
  expect(rows.map(({ rows }) => JSON.parse(rows as string))).toEqual([
    archived(30_000),
    [{ table: 'leads', row: { id: 2 } }],
    archived(3),
  ])
  await store.close()
})
