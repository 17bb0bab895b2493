// `accord migrate-to`: copies a database with a row in every table to PostgreSQL and back. No data
// is lost, and both engines return the same replies. Needs PostgreSQL programs.
import { randomBytes } from 'node:crypto'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { type Kysely, sql } from 'kysely'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { openCopy, openStore, type Store } from '../../db/store.ts'
import { tableChecksums } from '../../db/table-checksums.ts'
import { transfer } from '../../db/transfer/transfer.ts'
import { migrateToCommand } from '../../src/commands/migrate-to.ts'
import { serveCommand } from '../../src/commands/serve.ts'
import type { Config } from '../../src/config/config.ts'
import { installedMark } from '../../src/installation/installation.ts'
import { startWorld, urlOf, type World } from '../contract/support.ts'
import { accord, accordKilled } from '../support/accord.ts'
import { start, startServer, type TestServer } from '../support/app.ts'
import { isPostgres } from '../support/engine.ts'
import { type Folder, installedFolder, said } from '../support/installed.ts'
import { type Cluster, startCluster } from '../support/postgres-cluster.ts'
import { needing } from '../support/programs.ts'
import { facts, parametersOf } from '../support/schema.ts'
import { useNew } from '../support/using.ts'

const given = process.env.ACCORD_TEST_POSTGRES_URL

const onBoth = given === undefined ? needing('postgres').describe : describe

onBoth.skipIf(isPostgres)(
  'accord migrate-to',
  {
    timeout: 120_000,
  },
  () => {
    let cluster: Cluster | undefined
    let folder: Folder
    let world: World
    /** A copy of the database, because no other connection may have the source open. */
    let source: Config
    const made: string[] = []

    const urlIn = (name: string): string => cluster?.url(name) ?? (given ?? '').replace(/[^/]*$/, name)

    async function administrate(statement: string): Promise<void> {
      const client = new pg.Client(urlIn('postgres'))
      await client.connect()
      await client.query(statement).finally(() => client.end())
    }

    /**
     * Returns the URL of a new empty database. It has a password, which must not appear in
     * messages.
     */
    async function newDatabase(): Promise<string> {
      const name = `move_${process.pid}_${made.length}`
      await administrate(`create database ${name}`)
      made.push(name)
      return urlIn(name).replace('accord@', 'accord:hidden-word@')
    }

    beforeAll(async () => {
      if (given === undefined) cluster = await startCluster()
      folder = await installedFolder()
      const { dataDir, databaseUrl } = folder.config
      world = await startWorld({ config: { dataDir, databaseUrl }, open: () => folder.store })
      await fillRest(folder.store)
      const file = join(folder.dataDir, 'source.db')
      await sql`vacuum into ${file}`.execute(folder.store.db)
      source = { ...folder.config, databaseUrl: `sqlite:${file}` }
    }, 120_000)
    afterAll(async () => {
      await world?.server.app.http.close()
      await folder?.close()
      for (const name of made) await administrate(`drop database if exists ${name} with (force)`)
      cluster?.stop()
    })

    const tablesOf = async (store: Store) => store.dialect.copies.tables(store.db as unknown as Kysely<unknown>)

    /**
     * Returns the checksums of the copied tables, without the totals and counts, which the target
     * computes with other ids.
     */
    async function copiedSums(file: string) {
      const copy = openCopy(file)
      const {
        lead_totals: _totals,
        lead_counts: _counts,
        ...sums
      } = await tableChecksums(copy).finally(() => copy.close())
      return sums
    }

    async function lastIdsOf(url: string) {
      const store = openStore(url)
      const {
        lead_totals: _totals,
        lead_counts: _counts,
        ...ids
      } = await store.dialect.lastIds(store.db as unknown as Kysely<unknown>).finally(() => store.close())
      return ids
    }

    describe('with one of everything', () => {
      let url: string
      let back: string
      beforeAll(async () => {
        url = await newDatabase()
        back = `sqlite:${join(folder.dataDir, 'back.db')}`
      })

      it('moves to PostgreSQL and says what to do next', async () => {
        const { code, stdout, stderr } = await said(() => migrateToCommand(source, url, {}))
        expect(stderr.split('\n').filter((line) => !/^(Reading|Copying|Verifying) \d+\/\d+$/.test(line))).toEqual([''])
        expect(stdout).toMatch(
          /^Copied \d+ rows of \d+ tables to postgres:.*; counts and hashes are equal\.\nSet ACCORD_DATABASE_URL /,
        )
        expect(stdout).not.toContain('hidden-word')
        expect(code).toBe(0)
      })

      it('refuses a source that a server has open, although the server is idle', async () => {
        const target = await newDatabase()
        const refused = await said(() => migrateToCommand(folder.config, target, {}))
        expect(refused).toMatchObject({ code: 1, stdout: '' })
        expect(refused.stderr).toMatch(/ has \S+accord\.db open\. Stop it first; nothing was changed\.\n$/)
        const store = openStore(url)
        await store.db.selectFrom('users').select('id').execute()
        const { code, stderr } = await said(() =>
          migrateToCommand({ ...folder.config, databaseUrl: url }, `sqlite:${join(folder.dataDir, 'no.db')}`, {}),
        ).finally(() => store.close())
        expect([code, stderr]).toEqual([1, expect.stringContaining('open. Stop it first; nothing was changed.')])
        expect(existsSync(join(folder.dataDir, 'no.db'))).toBe(false)
      })

      it('has the indexes of custom attributes', async () => {
        const { rows: wanted } = await sql<{ name: string }>`
        select name from sqlite_schema where name glob '*_attribute_[0-9]*_index' order by name`.execute(
          folder.store.db,
        )
        const store = openStore(url)
        const { rows } = await sql<{ name: string }>`
        select indexname as name from pg_indexes where indexname ~ '_attribute_[0-9]+_index$' order by 1`
          .execute(store.db)
          .finally(() => store.close())
        expect(wanted.length).toBeGreaterThan(0)
        expect(rows).toEqual(wanted)
      })

      it('refuses a target that is not empty', async () => {
        const { code, stderr } = await said(() => migrateToCommand(source, url, {}))
        expect({ code, stderr }).toEqual({
          code: 1,
          stderr: 'The target is not empty. Name an empty database, so that no data are mixed or lost.\n',
        })
      })

      it('moves back to SQLite with every row and every counter', async () => {
        const config = { ...folder.config, databaseUrl: url }
        const { code, stdout } = await said(() => migrateToCommand(config, back, { json: true }))
        expect(code).toBe(0)
        const result = JSON.parse(stdout)
        expect(result).toMatchObject({ resumed: false, target: back })
        expect(result.source).not.toContain('hidden-word')
        const wanted = await copiedSums(join(folder.dataDir, 'accord.db'))
        expect(Object.keys(wanted).length).toBeGreaterThan(70)
        expect(Object.values(wanted).filter(({ rows }) => rows === 0)).toEqual([])
        expect(await copiedSums(join(folder.dataDir, 'back.db'))).toEqual(wanted)
        expect(await lastIdsOf(back)).toEqual(await lastIdsOf(folder.config.databaseUrl))
      })

      it('answers every list, report and search as before', async () => {
        const { dataDir } = folder.config
        const [before, after] = await Promise.all(
          [back, url].map((databaseUrl) =>
            startServer({ config: { dataDir, databaseUrl }, open: () => openStore(databaseUrl) }),
          ),
        )
        try {
          const [old = {}, now = {}] = await Promise.all(
            [before, after].map((server) => readAll(world, server as TestServer)),
          )
          const found = Object.values(old).filter((reply) => reply.data?.length)
          expect(found.length).toBeGreaterThan(40)
          const names = Object.keys(old).filter((name) => !isDeepStrictEqual(old[name], now[name]))
          expect(names.map((name) => ({ name, old: old[name], now: now[name] }))).toEqual([])
        } finally {
          for (const server of [before, after]) {
            await server?.app.http.close()
            await server?.store.close()
          }
        }
      })

      it('gives new ids in every table', async () => {
        const store = openStore(url)
        const last = await lastIdsOf(folder.config.databaseUrl)
        const found: Record<string, boolean> = {}
        try {
          for (const { name, columns, key } of await tablesOf(store)) {
            if (key.join() !== 'id' || ['commit_order', 'event_readers'].includes(name)) continue
            const id = await insertAgain(store, name, columns)
            found[name] = id > (last[name] ?? 0)
          }
        } finally {
          await store.close()
        }
        expect(Object.keys(found).length).toBeGreaterThan(50)
        expect(Object.entries(found).filter(([, isNew]) => !isNew)).toEqual([])
      })
    })

    it('goes on after a kill, and only with the same source', async () => {
      const large = await installedFolder()
      const other = await installedFolder()
      try {
        await addPersons(large.store, 20_000)
        await other.store.db.updateTable('migrations').set({ applied_at: start }).execute()
        await large.stop()
        await other.stop()
        const target = await newDatabase()
        const environment = { ACCORD_DATA_DIR: large.dataDir }
        const place = join(large.dataDir, '..')
        const killed = await accordKilled(place, ['migrate-to', target], /(Copying \d{4,}\/)/, environment)
        expect(killed.code).toBeNull()

        const early = await said(() => serveCommand({ ...large.config, databaseUrl: target }))
        expect(early.stderr).toContain('it contains an unfinished copy. Run accord migrate-to again')
        expect(early.code).toBe(1)

        const refused = await said(() => migrateToCommand(other.config, target, {}))
        expect(refused.stderr).toContain('The target has an unfinished copy of another installation.')
        expect(refused.code).toBe(1)

        const continued = await accord(place, ['migrate-to', target, '--json'], environment)
        expect(continued).toMatchObject({ code: 0 })
        expect(JSON.parse(continued.stdout)).toMatchObject({ resumed: true, tables: { persons: { rows: 20_000 } } })
        const first = /Copying (\d+)\/\d+\n(?=Copying)/.exec(continued.stderr.replace(/^Copying \d{1,3}\/.*\n/gm, ''))
        expect(Number(first?.[1])).toBeGreaterThan(1_000)
        const store = openStore(target)
        const { rows } = await sql<{ count: number }>`select count(*) as count from persons`
          .execute(store.db)
          .finally(() => store.close())
        expect(rows).toEqual([{ count: 20_000 }])
      } finally {
        await large.close()
        await other.close()
      }
    })

    describe('with little', () => {
      let target: Store
      let url: string
      const little = useNew(installedFolder)
      beforeEach(async () => {
        await addPersons(little.store, 3)
        url = await newDatabase()
        target = openStore(url)
      })
      afterEach(async () => {
        await target.close()
      })
      const isEmpty = async (): Promise<boolean> =>
        !(await target.dialect.hasTables(target.db as unknown as Kysely<unknown>))

      it('refuses texts that PostgreSQL cannot store, and copies nothing', async () => {
        const { db } = little.store
        await db.updateTable('persons').set({ name: 'a\0b' }).where('id', '=', 2).execute()
        await db
          .updateTable('persons')
          .set({ contact_numbers: '[{"value":"\\ud800","label":"\\\\u0000"}]' })
          .where('id', '=', 3)
          .execute()
        // An escaped backslash and a surrogate pair can be stored.
        await db.updateTable('persons').set({ emails: '["\\\\u0000 \\ud83d\\ude00"]' }).where('id', '=', 1).execute()
        await little.stop()
        const { code, stderr } = await said(() => migrateToCommand(little.config, url, {}))
        expect(code).toBe(1)
        expect(stderr.split('\n').filter((line) => !line.startsWith('Reading'))).toEqual([
          'The target cannot store some texts.',
          'The column name of the table persons contains U+0000 in the row with id 2.',
          'The column contact_numbers of the table persons contains half a surrogate pair in the row with id 3.',
          'Nothing was copied. Change these texts, then run the command again.',
          '',
        ])
        expect(await isEmpty()).toBe(true)
      })

      it('names the row that the target refuses', async () => {
        // This text is too long for an index entry of PostgreSQL and cannot be compressed.
        const long = randomBytes(6_000).toString('base64')
        await little.store.db.updateTable('persons').set({ name_key: long }).where('id', '=', 2).execute()
        await little.stop()
        const { code, stderr } = await said(() => migrateToCommand(little.config, url, {}))
        expect(stderr).toMatch(/The row with id 2 of the table persons cannot be stored in the target: index row size /)
        expect(code).toBe(1)
      })

      it('fails when the copy differs', async () => {
        const changing = transfer(little.store, target, {
          finish: async (db) => {
            await db.updateTable('persons').set({ name: 'Changed' }).where('id', '=', 2).execute()
            await db.deleteFrom('workflows').where('id', '=', 1).execute()
          },
        })
        await expect(changing).rejects.toThrow(
          /^The copy differs from the source in (persons \(other values\), workflows \(1 rows instead of 2\)|workflows .*, persons .*)\. /,
        )
        expect(await target.db.selectFrom('migrations').selectAll().execute()).toEqual([])
      })

      it('fails when a server writes meanwhile', async () => {
        const writing = transfer(little.store, target, { finish: () => addPersons(little.store, 1) })
        await expect(writing).rejects.toThrow(/^The source has changed during the copy \(persons\)/)
        await expect(transfer(little.store, target)).rejects.toThrow(
          /^The source has changed since the unfinished copy began \(persons\)/,
        )
      })

      it('compares JSON as values', async () => {
        await transfer(little.store, target, {
          finish: async (db) => {
            await sql`update persons set contact_numbers = '[ {"value" : "1"} ]' where id = 2`.execute(db)
          },
        })
      })

      it.each([
        ['mysql://u:hidden-word@host/db', 'not mysql:.'],
        ['/srv/new.db', 'not a text without a scheme.'],
        ['sqlite::memory:', 'not sqlite:.'],
        ['postgres://u:hidden-word@host', 'must be postgres://'],
        ['postgres://u:hidden-word%@ho st/x', 'must be postgres://'],
        ['postgres://u:hidden-word@127.0.0.1:1/x', 'The copy to postgres://u@127.0.0.1:1/x stopped: '],
      ])('refuses %s and shows no password', async (bad, sentence) => {
        await little.stop()
        const { code, stdout, stderr } = await said(() => migrateToCommand(little.config, bad, {}))
        expect(stderr).toContain(sentence)
        expect(stdout + stderr).not.toContain('hidden-word')
        expect(code).toBe(1)
      })

      it('refuses a source that is empty or belongs to another installation', async () => {
        await little.stop()
        const target = `sqlite:${little.dataDir}/new.db`
        const empty = await said(() => migrateToCommand({ ...little.config, databaseUrl: url }, target, {}))
        expect(empty.stderr).toContain('is gone or empty')
        expect((await said(() => migrateToCommand(little.config, url, {}))).code).toBe(0)
        writeFileSync(installedMark(little.config), 'the id of another installation')
        const other = { ...little.config, databaseUrl: url }
        expect((await said(() => migrateToCommand(other, target, {}))).stderr).toContain(
          'belongs to another installation',
        )
        expect(existsSync(join(little.dataDir, 'new.db'))).toBe(false)
      })

      it('refuses the engine of the source', async () => {
        await little.stop()
        const { stderr } = await said(() => migrateToCommand(little.config, `sqlite:${little.dataDir}/new.db`, {}))
        expect(stderr).toContain('The source and the target have the same engine.')
      })
    })
  },
)

const addPersons = async (store: Store, count: number): Promise<void> =>
  void (await sql`with recursive numbers (number) as (select 1 union all select number + 1 from numbers where number < ${count})
    insert into persons (name, name_key, emails, contact_numbers, created_at, updated_at)
    select 'Person ' || number, 'person ' || number, '[]', '[{"value":"1"}]', ${start}, ${start} from numbers`.execute(
    store.db,
  ))

/** Adds a row to each empty table, and references to later rows. */
async function fillRest(store: Store): Promise<void> {
  const untyped = store.db as unknown as Kysely<unknown>
  const { foreignKeys } = await store.dialect.relations(untyped)
  const waiting = [...(await store.dialect.copies.tables(untyped))]
  for (let each = waiting.shift(); each; each = waiting.shift()) {
    const { name, json } = each
    const needs = foreignKeys.filter((key) => key.table === name && !key.isNullable && key.parent !== name)
    if (waiting.some((other) => needs.some(({ parent }) => parent === other.name))) {
      waiting.push(each)
      continue
    }
    const { rows: present } = await sql`select 1 from ${sql.table(name)} limit 1`.execute(store.db)
    if (present.length > 0) continue
    const { rows: columns } = await sql<{ name: string; type: string }>`
      select name, type from pragma_table_info(${name}) where not (name = 'id' and pk = 1) and dflt_value is null`.execute(
      store.db,
    )
    const row: Record<string, unknown> = {}
    for (const { name: column, type } of columns) {
      const reference = foreignKeys.find((key) => key.table === name && key.column === column)
      const known = demanded[`${name}.${column}`]
      if (known !== undefined) row[column] = known
      else if (reference !== undefined) {
        if (!reference.isNullable) row[column] = sql`(select min(id) from ${sql.table(reference.parent)})`
      } else if (type === 'INTEGER') row[column] = 1
      else row[column] = json.includes(column) ? '{"a": [1, "é"]}' : textFor(column)
    }
    await store.db
      .insertInto(name as 'persons')
      .values(row as never)
      .execute()
    // A second row, which the reference below needs.
    if (name === 'workflow_runs' || name === 'lead_outcomes')
      await store.db
        .insertInto(name as 'workflow_runs')
        .values({ ...row, ...(name === 'workflow_runs' && { event_id: 2 }) } as never)
        .execute()
  }
  for (const { table, column, parent } of foreignKeys.filter((key) => key.table === key.parent)) {
    const own = sql.table(table)
    await sql`update ${own} set ${sql.ref(column)} = (select max(id) from ${sql.table(parent)})
      where id = (select min(id) from ${own})`.execute(store.db)
    const { rows } = await sql`select 1 from ${own} where ${sql.ref(column)} > id`.execute(store.db)
    expect(rows.length, `a row of ${table} refers to a later one`).toBe(1)
  }
  // The newest event is deleted. Its id must not be generated again.
  await sql`insert into events (id, name, entity_type, actor_type, origin, created_at)
    values (5000, 'lead.update.after', 'leads', 'system', 'cli', ${start})`.execute(store.db)
  await store.db.deleteFrom('events').where('id', '=', 5000).execute()
}

const textFor = (column: string): string =>
  /_at$|_until$|_start$|^run_for$|^answered_/.test(column) ? start : `${column} 名前`
/** Values that check constraints require. */
const demanded: Record<string, string | number> = {
  'activity_participants.user_id': 1,
  'activity_participants.response': 'accepted',
  'erased_identities.kind': 'email',
  'idempotency_keys.token_id': 1,
  'import_records.entity_type': 'persons',
  'import_records.did': 'created',
  'import_remainders.entity_type': 'persons',
  'import_remainders.reason': 'gone',
  'organization_match_keys.kind': 'name',
  'person_match_keys.kind': 'name',
  'lead_outcomes.at': start,
  'lead_outcomes.kind': 'won',
  'lead_outcomes.sign': 1,
}

/** Operations whose reply depends on the process. */
const ofProcess = new Set(['getMetrics', 'getHealth', 'getReadiness'])

/** Words and parts of words in the data, long and short. */
const needles = ['example', 'xampl', 'an', 'é']

interface Answered {
  status: number
  data?: unknown[]
}

/** Returns the replies of all reading operations and searches. */
async function readAll(world: World, server: TestServer): Promise<Record<string, Answered>> {
  const replies: Record<string, Answered> = {}
  const read = async (name: string, url: string, query: Record<string, string> = {}): Promise<void> => {
    const { status, body, text } = await server.admin.get(url, { query })
    const { request_id: _request, ...rest } = withoutUse(body ?? { text })
    // Only the set of hits must be equal, because each engine computes other scores.
    replies[name] = { status, ...(query.q === undefined ? rest : sorted(rest)) }
  }
  for (const [id, { method }] of facts) {
    if (method !== 'get' || ofProcess.has(id)) continue
    const url = `/${urlOf(world, id)}`
    await read(id, url)
    if (!parametersOf(id, 'query').some(({ name }) => name === 'q')) continue
    for (const q of needles) await read(`${id} ${q}`, url, { q })
  }
  return replies
}

/** Removes the last use of tokens, which the server stores some time after the request. */
const withoutUse = (body: unknown) =>
  JSON.parse(JSON.stringify(body), (name, value) => (name.startsWith('last_used_') ? null : value))

const sorted = (body: { data?: unknown }) => ({
  ...body,
  ...(Array.isArray(body.data) && { data: body.data.map((hit) => JSON.stringify({ ...hit, score: null })).sort() }),
})

/** Inserts a copy of the first row of a table, returns its generated id, and rolls back. */
async function insertAgain(store: Store, table: string, columns: readonly string[]): Promise<number> {
  const others = sql.join(columns.filter((name) => name !== 'id').map((name) => sql.ref(name)))
  const undone = new Error('undone')
  let id = 0
  await store
    .transaction(async (db) => {
      // Disables triggers and foreign keys.
      await sql`set local session_replication_role = replica`.execute(db)
      await sql`create temporary table kept on commit drop as select * from ${sql.table(table)} limit 1`.execute(db)
      await sql`delete from ${sql.table(table)}`.execute(db)
      const { rows } = await sql<{ id: number }>`
        insert into ${sql.table(table)} (${others}) select ${others} from kept returning id`.execute(db)
      id = rows[0]?.id ?? 0
      throw undone
    })
    .catch((error: unknown) => {
      if (error !== undone) throw error
    })
  return id
}
