// The database engine of the tests: SQLite in memory, or PostgreSQL when ACCORD_TEST_ENGINE is
// `postgres`. An image is a whole database that a test can open repeatedly. The differential run
// (test/differential) uses both engines in one process.

import { writeFileSync } from 'node:fs'
import { sql } from 'kysely'
import pg from 'pg'
import type { Dialect } from '../../db/dialect.ts'
import { openPools, type Pools } from '../../db/postgres/connection.ts'
import { openImage as openSqliteImage, openStore, type Store } from '../../db/store.ts'
import { failFirstAttempt, isHostile, refuseUnportable } from './hostile.ts'
import { newName } from './names.ts'

export type Engine = Dialect['name']

export const isPostgres = process.env.ACCORD_TEST_ENGINE === 'postgres'

/** The default engine of tests. */
export const testEngine: Engine = isPostgres ? 'postgres' : 'sqlite'

/** On SQLite, the bytes of the database. On PostgreSQL, the names of a database and a schema. */
export type Image = Buffer

const serverUrl = (): string => {
  const url = process.env.ACCORD_TEST_POSTGRES_URL
  if (!url) throw new Error('The set-up of the tests has not started PostgreSQL (test/support/global-setup.ts).')
  return url
}

export const databaseUrl = (name: string): string => serverUrl().replace(/[^/]*$/, name)

/** Runs statements outside of any test database, such as `create database`. */
export async function administrate(...statements: string[]): Promise<void> {
  const client = new pg.Client(serverUrl())
  await client.connect()
  try {
    for (const statement of statements) await client.query(statement)
  } finally {
    await client.end()
  }
}

/** The first bytes of every SQLite database. */
const isOfSqlite = (image: Image): boolean => image.subarray(0, 13).toString() === 'SQLite format'

/** Returns a function that opens an image of SQLite in this file. */
export const openAt = (file: string) => (image: Image) => {
  writeFileSync(file, image)
  return openStore(`sqlite:${file}`)
}

/**
 * Opens a copy of the image. Closing the store removes the copy. `max` limits the connections of
 * each pool.
 */
export async function openImage(image: Image, max?: number): Promise<Store> {
  if (isOfSqlite(image)) {
    const store = openSqliteImage(image)
    // Reverses the order of rows without a complete `order by`, so that tests detect it.
    await sql`pragma reverse_unordered_selects = on`.execute(store.db)
    return store
  }
  const { database, schema } = imageName(image)
  const name = free.get(database)?.pop() ?? (await copyDatabase(database))
  if (max !== undefined) await closeConnections(name)
  openConnections(name, max)
  await restore(name, schema)
  return openTemporary(name, database)
}

/** Unused databases, by the template that they were copied from. */
const free = new Map<string, string[]>()

async function copyDatabase(template: string): Promise<string> {
  const name = newName('test')
  await administrate(`create database ${name} template ${template}`)
  return name
}

/** Connections stay open between tests, because a new connection takes longer than most tests. */
const connections = new Map<string, Pools>()

function openConnections(name: string, max = 4): Pools {
  const pools = connections.get(name) ?? refuseUnportable(openPools(databaseUrl(name), { max }))
  connections.set(name, pools)
  return pools
}

async function closeConnections(name: string): Promise<void> {
  await connections.get(name)?.close()
  connections.delete(name)
}

/** Opens a store. With a `template`, other tests can reuse its database after it is closed. */
function openTemporary(name: string, template: string | null): Store {
  const pools = openConnections(name)
  const store = openStore(databaseUrl(name), {
    postgres: { pools, ...(isHostile && { beforeCommit: failFirstAttempt }) },
  })
  let isClosed = false
  return {
    ...store,
    image: () => dump(name),
    close: async () => {
      if (isClosed) return
      isClosed = true
      await store.close()
      if (template === null) {
        await closeConnections(name)
        await administrate(`drop database if exists ${name} with (force)`)
      } else free.set(template, [...(free.get(template) ?? []), name])
    },
  }
}

const databaseOf = (store: Store): string => store.url.split('/').at(-1) as string

/** Opens a store without tables. */
export async function openEmpty(engine: Engine = testEngine): Promise<Store> {
  if (engine === 'sqlite') return openStore('sqlite::memory:')
  const name = newName('test')
  await administrate(`create database ${name}`)
  return openTemporary(name, null)
}

/**
 * Parses an image of PostgreSQL: the name of a database, and of a schema in it with copies of all
 * tables.
 */
function imageName(image: Image): { database: string; schema: string } {
  const [database = '', schema = ''] = image.toString().split('.')
  return { database, schema }
}

/** Returns an image of the current state of the store. */
export async function imageOf(store: Store): Promise<Image> {
  if (store.dialect.name === 'sqlite') return store.image()
  const database = databaseOf(store)
  const schema = newName('kept')
  await inDatabase(database, copyTables, `call accord_test_keep('${schema}')`)
  return Buffer.from(`${database}.${schema}`)
}

/** Closes the store and returns its image, a database that can be copied. */
export async function closeAsTemplate(store: Store): Promise<void> {
  if (store.dialect.name === 'sqlite') return store.close()
  const database = databaseOf(store)
  await closeConnections(database)
  await administrate(
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${database}'`,
    `alter database ${database} allow_connections false`,
  )
}

/** Restores the image and opens the store again. */
export async function reopen(store: Store, image: Image): Promise<Store> {
  await store.close()
  if (isOfSqlite(image)) return openImage(image)
  const { database, schema } = imageName(image)
  const name = databaseOf(store)
  if (!(await hasSchema(name, schema))) return openImage(image)
  await restore(name, schema)
  for (const names of free.values()) if (names.includes(name)) names.splice(names.indexOf(name), 1)
  return openTemporary(name, database)
}

async function inDatabase(name: string, ...statements: string[]): Promise<unknown[]> {
  const client = await openConnections(name).write.connect()
  try {
    let rows: unknown[] = []
    for (const statement of statements) rows = (await client.query(statement)).rows
    return rows
  } finally {
    client.release()
  }
}

const hasSchema = async (database: string, schema: string): Promise<boolean> =>
  (await inDatabase(database, `select 1 from pg_namespace where nspname = '${schema}'`)).length > 0

/** Returns every row of every table as text, for tests that search for a secret or a change. */
async function dump(database: string): Promise<Buffer> {
  const tables = (await inDatabase(
    database,
    "select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r' order by 1",
  )) as { name: string }[]
  const texts: string[] = []
  for (const { name } of tables)
    texts.push(name, JSON.stringify(await inDatabase(database, `select * from "${name}" as row order by row::text`)))
  return Buffer.from(texts.join('\n'))
}

/**
 * The number of restores since the last vacuum, by database. Each restore leaves dead rows, which
 * slow down reads.
 */
const restores = new Map<string, number>()
const maxRestores = 15

async function restore(database: string, schema: string): Promise<void> {
  await inDatabase(
    database,
    'set session_replication_role = replica',
    `call accord_test_restore('${schema}')`,
    'set session_replication_role = origin',
  )
  const count = (restores.get(database) ?? 0) + 1
  restores.set(database, count % maxRestores)
  if (count < maxRestores) return
  const tables = (await inDatabase(
    database,
    `select string_agg(quote_ident(relname), ',') as names from pg_class
      where relnamespace = 'public'::regnamespace and relkind = 'r' and pg_relation_size(oid) > 0`,
  )) as { names: string }[]
  await inDatabase(database, `vacuum analyze ${tables[0]?.names}`)
}

/** Copies tables to a schema and back, which is much faster than copying a database. */
const copyTables = `
create or replace procedure accord_test_keep(kept text) language plpgsql as $$
declare each record; begin
  execute format('create schema %I', kept);
  execute format('create table %I.sequences (name text, value bigint, called boolean)', kept);
  for each in select oid, relname, relkind from pg_class where relnamespace = 'public'::regnamespace loop
    if each.relkind = 'r' then
      -- A table that never had a row has no page.
      continue when pg_relation_size(each.oid) = 0;
      execute format('create table %I.%I as table public.%I', kept, each.relname, each.relname);
    elsif each.relkind = 'S' then
      execute format('insert into %I.sequences select %L, last_value, is_called from public.%I', kept, each.relname, each.relname);
    end if;
  end loop;
end $$;
create or replace procedure accord_test_restore(kept text) language plpgsql as $$
declare each record; columns text; begin
  for each in select oid, relname from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r' loop
    continue when pg_relation_size(each.oid) = 0;
    execute format('delete from public.%I', each.relname);
    continue when to_regclass(format('%I.%I', kept, each.relname)) is null;
    select string_agg(quote_ident(attname), ',') into columns from pg_attribute
      where attrelid = each.oid and attnum > 0 and not attisdropped and attgenerated = '';
    execute format('insert into public.%I (%s) select %s from %I.%I', each.relname, columns, columns, kept, each.relname);
  end loop;
  execute format('select setval(''public.'' || name, value, called) from %I.sequences', kept);
end $$;
`
