// An installation in a schema of its own, which the URL or the role names by `search_path`.
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openStore, type Store } from '../../db/store.ts'
import { prepareStore, startServer, type TestServer } from '../support/app.ts'
import { administrate, databaseUrl } from '../support/engine.ts'

const database = `schema_${process.pid}`
const url = `${databaseUrl(database)}?options=-csearch_path%3Dsales&sslmode=prefer`
let store: Store
let server: TestServer
const query = async (text: string): Promise<any[]> => {
  const client = new pg.Client({ connectionString: databaseUrl(database) })
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

beforeAll(async () => {
  await administrate(`create database ${database}`)
  await query('create extension pg_trgm; create schema sales')
  store = openStore(url)
  await prepareStore(store)
  server = await startServer({ open: () => store })
})
afterAll(async () => {
  await server.close()
  await administrate(`drop database ${database} with (force)`)
})

it('has its tables and functions there, and nothing in public', async () => {
  const [own] = await query("select count(*)::int as count from pg_tables where schemaname = 'sales'")
  expect(own.count).toBeGreaterThan(50)
  expect(await query("select tablename from pg_tables where schemaname = 'public'")).toEqual([])
  const strange = `select proname from pg_proc where proname like 'accord%' and pronamespace = 'public'::regnamespace`
  expect(await query(strange)).toEqual([])
})

it('keeps totals, finds names and keeps the settings of its connections', async () => {
  const { status } = await server.admin.post('/leads', { title: 'Ångström', lead_value: 5 })
  expect(status).toBe(201)
  expect((await server.admin.get('/leads?q=angstrom')).body.data).toHaveLength(1)
  expect((await server.admin.get('/search?q=angstrom')).body.data).toHaveLength(1)
  expect((await server.admin.get('/leads')).body.meta.total).toBe(1)
  const shown = await store.db.selectFrom('lead_totals').select('count').execute()
  expect(shown).toEqual([{ count: 1 }])
  expect(await store.maintain()).toBeUndefined()
})
