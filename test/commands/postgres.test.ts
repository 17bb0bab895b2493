// The command line on PostgreSQL: installation, checks of the server, backup and restore. The
// server requires a password, so that tests detect programs that do not get it.
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { requirementProblem, type ServerFacts } from '../../db/postgres/installation-probe.ts'
import { splitPassword } from '../../db/postgres/url.ts'
import { displayUrl, openStore } from '../../db/store.ts'
import { backupCommand } from '../../src/commands/backup/backup.ts'
import { doctorCommand } from '../../src/commands/doctor/doctor.ts'
import { install } from '../../src/commands/install/install.ts'
import { moveInstallationAside } from '../../src/commands/install/new-installation.ts'
import { listJobsCommand, rebuildSearchCommand } from '../../src/commands/maintenance.ts'
import { migrateCommand } from '../../src/commands/migrate.ts'
import { restoreCommand } from '../../src/commands/restore/restore.ts'
import { serveCommand } from '../../src/commands/serve.ts'
import { createTokenCommand } from '../../src/commands/token.ts'
import { createUserCommand, listUsersCommand } from '../../src/commands/user.ts'
import { type Config, readConfig } from '../../src/config/config.ts'
import { openData } from '../../src/installation/data-folder.ts'
import { startServer } from '../../src/server.ts'
import { accordServing } from '../support/accord.ts'
import { testConfig } from '../support/app.ts'
import { type Said, said } from '../support/installed.ts'
import { type Cluster, startCluster } from '../support/postgres-cluster.ts'
import { needing } from '../support/programs.ts'

const password = 'p@ss:word/100%'
const shownUrl = (database: string): string => clientUrl(database).replace(/:[^:@]*@/, ':***@')

let cluster: Cluster
let root: string
let databases = 0

/** Runs statements as the superuser. */
async function administrate(database: string, ...statements: string[]): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(cluster.url(database))
  await client.connect()
  try {
    let rows: Record<string, unknown>[] = []
    for (const statement of statements) rows = (await client.query(statement)).rows
    return rows
  } finally {
    await client.end()
  }
}

const clientUrl = (database: string): string =>
  cluster.url(database).replace('accord@', `crm:${encodeURIComponent(password)}@`)

/**
 * Creates a database of the user crm. Returns a configuration whose data folder does not exist yet.
 */
async function place(
  changes: Partial<Config> = {},
  options = '',
): Promise<{ config: Config; database: string; folder: string }> {
  const database = `crm_${++databases}`
  await administrate('postgres', `create database ${database} owner crm ${options}`)
  const folder = join(root, database)
  return {
    config: testConfig({ dataDir: folder, databaseUrl: clientUrl(database), port: 0, secret: null, ...changes }),
    database,
    folder,
  }
}

async function installedAnew(): ReturnType<typeof place> {
  const made = await place()
  const store = await openData(made.config)
  await install(made.config, store, { folder: made.folder })
  await store.close()
  return made
}

let model: ReturnType<typeof place> | undefined

/** Copies a model installation, which is faster than a new installation. */
async function installed(changes: Partial<Config> = {}): ReturnType<typeof place> {
  model ??= installedAnew()
  const { database: template, folder: from } = await model
  const made = await place(changes, `template ${template}`)
  cpSync(from, made.folder, { recursive: true })
  // From Node 22 on, a copied folder does not get the mode of its source.
  chmodSync(made.folder, 0o700)
  return made
}

const addUser = (config: Config, name: string): Promise<Said> =>
  said(() => createUserCommand(config, { name, email: `${name}@example.com`, role: 'Administrator' }))
const emails = async (config: Config): Promise<string[]> =>
  (await said(() => listUsersCommand(config))).stdout.split('\n').flatMap((line) => line.split('\t')[1] ?? [])
const restore = (config: Config, backup: string, options = {}): Promise<Said> =>
  said(() => restoreCommand(config, backup, options))

async function backUp(config: Config): Promise<string> {
  const { stdout, stderr } = await said(() => backupCommand(config, {}))
  expect(stderr).toBe('')
  return /^Backed up to (\S+)$/m.exec(stdout)?.[1] ?? ''
}

needing('postgres').describe(
  'the command line on PostgreSQL',
  {
    timeout: 60_000,
  },
  () => {
    beforeAll(async () => {
      cluster = await startCluster()
      root = mkdtempSync(join(tmpdir(), 'accord-commands-'))
      await administrate('postgres', `create role crm login password '${password}'`)
      const rules = join(cluster.folder, 'data', 'pg_hba.conf')
      writeFileSync(rules, `host all crm 127.0.0.1/32 scram-sha-256\n${readFileSync(rules, 'utf8')}`)
      await administrate('postgres', 'select pg_reload_conf()')
    })
    afterAll(() => {
      cluster.stop()
      rmSync(root, { recursive: true, force: true })
    })

    it('installs, and the commands and the doctor find everything in order', async () => {
      const { config, database, folder } = await place()
      const first = await said(() => migrateCommand(config))
      expect(first.stdout).toContain('applied 0001_identity')
      const store = await openData(config)
      const { admin } = await install(config, store, { folder })
      await store.close()
      expect(admin?.email).toBe('admin@example.com')
      expect(readFileSync(join(folder, 'installed'), 'utf8')).toMatch(/^[0-9a-f]{32}\n$/)
      expect(existsSync(join(folder, 'installing'))).toBe(false)

      expect((await addUser(config, 'ada')).stdout).toContain('User 2 created')
      expect(await emails(config)).toEqual(['admin@example.com', 'ada@example.com'])
      const token = { email: 'ada@example.com', name: 'T', abilities: '*', expiresInDays: '1' }
      expect((await said(() => createTokenCommand(config, token))).stdout).toMatch(/^\d+\|\S+\n$/)
      expect((await said(() => listJobsCommand(config, {}))).code).toBe(0)
      expect((await said(() => rebuildSearchCommand(config))).stdout).toBe('Indexed 0 records.\n')

      const { stdout, code } = await said(() => doctorCommand(config))
      expect(stdout).toContain(`ok      Database ${shownUrl(database)}\n`)
      expect(stdout.match(/^BROKEN.*$/gm)).toBeNull()
      expect(stdout).not.toContain('Write-ahead log')
      expect(code).toBe(0)
    })

    it('the doctor names an invalid index', async () => {
      const { config, database } = await installed()
      await administrate(
        database,
        'create index broken on users (name)',
        `update pg_index set indisvalid = false where indexrelid = 'broken'::regclass`,
      )
      const { stdout, code } = await said(() => doctorCommand(config))
      expect(stdout).toContain(
        `BROKEN  Database ${shownUrl(database)}: The index broken is not valid; rebuild it with REINDEX.\n`,
      )
      expect(code).toBe(1)
    })

    it('serves, and counts repeated transactions and connections', async () => {
      const { config } = await installed({ databaseConnections: 2 })
      const { app, close } = await startServer(config)
      try {
        const headers = { host: '127.0.0.1' }
        expect((await app.http.inject({ url: '/readyz', headers })).json()).toMatchObject({ status: 'ready' })
        const { body } = await app.http.inject({ url: '/metrics', headers })
        expect(body).toMatch(/^accord_transaction_retries_total \d+$/m)
        expect(body).toMatch(/^accord_database_connections\{pool="read",state="idle"\} [12]$/m)
        expect(Number(/^accord_database_bytes\{part="data"\} (\d+)$/m.exec(body)?.[1])).toBeGreaterThan(1_000_000)
      } finally {
        await close()
      }
    })

    describe('a database that cannot be used is refused in one sentence, without its password:', () => {
      const refusal = async (config: Config): Promise<string> => {
        const { stderr, stdout, code } = await said(() => serveCommand(config))
        expect([stdout, code]).toEqual(['', 1])
        expect(stderr).not.toContain(password)
        expect(stderr).not.toContain(encodeURIComponent(password))
        return stderr
      }

      it('a server that does not answer', async () => {
        const { config } = await place()
        const databaseUrl = `postgres://crm:${encodeURIComponent(password)}@127.0.0.1:1/crm`
        const sentence = 'it cannot be opened: connect ECONNREFUSED 127.0.0.1:1.\n'
        expect(await refusal({ ...config, databaseUrl })).toBe(
          `ACCORD_DATABASE_URL is postgres://crm:***@127.0.0.1:1/crm, and ${sentence}`,
        )
        const { stdout } = await said(() => doctorCommand({ ...config, databaseUrl }))
        expect(stdout).toContain(`BROKEN  Database postgres://crm:***@127.0.0.1:1/crm: ${sentence}`)
      })

      it('a server that does not answer yet: a worker waits for it', async () => {
        const { config, folder } = await installed()
        let cut = 0
        const proxy = createServer((client) => {
          if (++cut <= 2) return void client.destroy()
          const upstream = connect(cluster.port, '127.0.0.1')
          client.on('error', () => upstream.destroy()).pipe(upstream)
          upstream.on('error', () => client.destroy()).pipe(client)
        })
        await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
        const { port } = proxy.address() as AddressInfo
        const databaseUrl = config.databaseUrl.replace(/:\d+\//, `:${port}/`)
        const settings = { ACCORD_DATABASE_URL: databaseUrl, ACCORD_DATA_DIR: config.dataDir }
        const worker = await accordServing(folder, 'worker', settings)
        expect(worker.said.stderr).toMatch(/^Waiting up to 60 s for the database, because it cannot be opened:/)
        expect((await worker.stop()).code).toBe(0)
        proxy.close()
      })

      it('a wrong password, a missing database, and a URL that is none', async () => {
        const { config } = await place()
        const wrong = clientUrl('postgres').replace(/:[^:@]*@/, ':wrong@')
        expect(await refusal({ ...config, databaseUrl: wrong })).toContain(
          'password authentication failed for user "crm".\n',
        )
        expect(await refusal({ ...config, databaseUrl: clientUrl('nowhere') })).toContain(
          'database "nowhere" does not exist.\n',
        )
        const unescaped = clientUrl('x').replace(encodeURIComponent(password), 'p[w/x')
        expect(await refusal({ ...config, databaseUrl: unescaped })).toContain('the URL is not valid.')
      })

      it('another encoding, and missing rights', async () => {
        const { config, database } = await place()
        await administrate(
          'postgres',
          `create database latin owner crm encoding 'LATIN1' locale 'C' template template0`,
        )
        expect(await refusal({ ...config, databaseUrl: clientUrl('latin') })).toContain('its encoding is LATIN1.')
        await administrate('postgres', `alter database ${database} owner to accord`)
        expect(await refusal(config)).toContain('Run as its owner: grant create on schema public to "crm".\n')
        await administrate(database, 'grant create on schema public to crm')
        expect(await refusal(config)).toContain('the extension pg_trgm is missing there.')
      })

      it('tables of another program, and of a newer version', async () => {
        const { config, database } = await place()
        await administrate(database, 'create table migrations (id bigint, migration text)')
        expect(await refusal(config)).toContain('it contains tables of another program.')
        const newer = await installed()
        await administrate(newer.database, `insert into migrations values ('9999_future', now())`)
        expect(await refusal(newer.config)).toBe(
          'This database has the migration 9999_future, which this version of Accord CRM does not know: a newer version or a release candidate has migrated it. Install that version, or restore a backup made before it.\n',
        )
      })

      it.each<[string, Partial<ServerFacts>, string | null]>([
        ['as needed', {}, null],
        ['old', { version: 140_011 }, 'its server is PostgreSQL 14.11. Accord CRM needs PostgreSQL 15 or newer'],
        ['without ICU', { hasCollation: false }, 'its server has no collation "und-x-icu".'],
        ['without the extension, which may be created', { hasExtension: false }, null],
        ['with another time zone', { timezone: 'Europe/Berlin' }, `alter role "crm" set timezone = 'UTC'`],
      ])('a server %s', (_, changes, sentence) => {
        const facts: ServerFacts = {
          version: 150_004,
          encoding: 'UTF8',
          hasCollation: true,
          hasExtension: true,
          mayCreateExtension: true,
          schema: 'public',
          mayCreateTables: true,
          timezone: 'UTC',
          user: 'crm',
          database: 'crm',
        }
        const problem = requirementProblem({ ...facts, ...changes }, true)
        if (sentence === null) expect(problem).toBeNull()
        else expect(problem).toContain(sentence)
      })
    })

    describe('a lost database', () => {
      it('is never replaced by an empty one, and a new installation moves only files aside', async () => {
        const { config, database, folder } = await installed()
        const empty = await place({ dataDir: folder })
        const { stderr, code } = await said(() => serveCommand(empty.config))
        expect(stderr).toContain(
          `its database ${shownUrl(empty.database)} is gone or empty, but installed, secret and openapi.json of an installation exist. Nothing was changed.`,
        )
        expect(code).toBe(1)
        expect(await administrate(empty.database, 'select 1 from pg_tables where tableowner = $$crm$$')).toEqual([])

        await expect(moveInstallationAside(config)).rejects.toThrow(
          `The database ${shownUrl(database)} contains an installation, which cannot be moved aside.`,
        )
        expect(await moveInstallationAside(empty.config)).toEqual([expect.stringContaining('before-new-')])
        const store = await openData(empty.config)
        await install(empty.config, store, { folder })
        await store.close()
        expect(await emails(empty.config)).toEqual(['admin@example.com'])
      })

      it('of another installation is refused, and another data folder may use the same one', async () => {
        const [one, other] = [await installed(), await installedAnew()]
        const { stderr } = await said(() => listUsersCommand({ ...one.config, databaseUrl: other.config.databaseUrl }))
        expect(stderr).toContain('belongs to another installation than')
        const second = { ...one.config, dataDir: join(root, 'second node') }
        expect((await said(() => listUsersCommand(second))).stderr).toContain(
          'but this database was installed with a secret',
        )
        cpSync(join(one.folder, 'secret'), join(second.dataDir, 'secret'))
        expect(await emails(second)).toEqual(['admin@example.com'])
        expect(readdirSync(second.dataDir).sort()).toEqual(['installed', 'secret'])
      })
    })

    needing('pg_dump').describe('a backup', () => {
      it('brings everything back and keeps what it replaces', async () => {
        const { config, database, folder } = await installed()
        await addUser(config, 'ada')
        const backup = await backUp(config)
        expect(readdirSync(backup).sort()).toEqual(['accord.dump', 'files', 'manifest.json', 'openapi.json', 'secret'])
        expect((await restore(config, backup, { verify: true })).stdout).toContain('The backup is complete; verified')
        await administrate(
          database,
          `delete from users where email = 'ada@example.com'`,
          'create table newer (id bigint references users (id))',
          'alter table newer owner to crm',
        )

        expect((await restore(config, backup)).stderr).toContain(`already contains data.`)
        const open = openStore(config.databaseUrl)
        await open.db.selectFrom('users').select('id').execute()
        expect((await restore(config, backup, { force: true })).stderr).toContain(`has ${shownUrl(database)} open.`)
        await open.close()

        const done = await restore(config, backup, { force: true })
        expect(done.stderr).toBe('')
        expect(await emails(config)).toEqual(['admin@example.com', 'ada@example.com'])
        expect(await administrate(database, `select to_regclass('newer') as found`)).toEqual([{ found: null }])
        expect((await addUser(config, 'bob')).stdout).toContain('User 3 created')
        const aside = readdirSync(folder).find((name) => name.startsWith('before-restore-')) ?? ''
        expect(readdirSync(join(folder, aside))).toContain('accord.dump')
        expect((await said(() => doctorCommand(config))).stdout).toContain('Everything is in order.')
      })

      it('goes into an empty database beside an empty data folder', async () => {
        const from = await installed()
        const backup = await backUp(from.config)
        const to = await place()
        expect((await restore(to.config, backup)).stderr).toBe('')
        expect(await emails(to.config)).toEqual(['admin@example.com'])
        expect(readFileSync(join(to.folder, 'installed'), 'utf8')).toBe(
          readFileSync(join(from.folder, 'installed'), 'utf8'),
        )
        const sqlite = testConfig({
          dataDir: join(root, 'file'),
          databaseUrl: `sqlite:${join(root, 'file', 'accord.db')}`,
        })
        expect((await restore(sqlite, backup)).stderr).toContain('is a backup of the engine postgres')
      })

      it.each([
        ['before its data', 'CREATE TABLE'],
        ['after its data', 'CREATE INDEX'],
      ])('that cannot be restored %s changes nothing', async (_, tag) => {
        const { config, database, folder } = await installed()
        // pg_restore ends while its last 300 kB wait for psql, which then fails.
        await administrate(
          database,
          'create table filler as select repeat(md5(n::text), 100) as text from generate_series(1, 90) n',
          'alter table filler owner to crm',
        )
        const backup = await backUp(config)
        await addUser(config, 'ada')
        await administrate(
          database,
          'create schema guard',
          `create function guard.refuse() returns event_trigger language plpgsql
          as $$ begin perform pg_sleep(1); raise exception 'not today'; end $$`,
          `create event trigger refuse on ddl_command_start when tag in ('${tag}') execute function guard.refuse()`,
        )
        const before = readdirSync(folder)
        const { stderr, code } = await restore(config, backup, { force: true })
        expect(stderr).toBe('Nothing was changed. psql failed: not today.\n')
        expect(code).toBe(1)
        expect(readdirSync(folder)).toEqual(before)
        expect(await emails(config)).toEqual(['admin@example.com', 'ada@example.com'])
      })

      it('that is damaged is refused', async () => {
        const { config, database } = await installed()
        const backup = await backUp(config)
        truncateSync(join(backup, 'accord.dump'), 10_000)
        expect((await restore(config, backup, { force: true })).stderr).toMatch(
          /^\S+ is damaged: accord\.dump has 10000 bytes and should have \d+\.\n$/,
        )
        expect(await administrate(database, 'select id from users')).toHaveLength(1)
      })

      it('needs the programs of PostgreSQL', async () => {
        const { config, folder } = await installed()
        const { PATH } = process.env
        onTestFinished(() => {
          process.env.PATH = PATH
        })
        process.env.PATH = root
        expect((await said(() => backupCommand(config, {}))).stderr).toBe(
          'pg_dump is missing. Install the Debian package postgresql-client, in the version of the server or newer.\n',
        )
        expect(readdirSync(join(folder, 'backups'))).toEqual([])
      })
    })
  },
)

describe('the URL of a database', () => {
  it.each([
    ['postgres://host/crm', 'postgres://host/crm', null],
    ['postgres://crm@host:5432/crm?sslmode=require', 'postgres://crm@host:5432/crm?sslmode=require', null],
    ['postgresql://crm:secret@host/crm', 'postgresql://crm:***@host/crm', 'secret'],
    ['postgres://crm:a%40b%2Fc@[::1]:5432/crm', 'postgres://crm:***@[::1]:5432/crm', 'a@b/c'],
    ['postgres://host/crm?password=a%26b&sslmode=require', 'postgres://host/crm?password=***&sslmode=require', 'a&b'],
  ])('%s is shown without its password', (url, shown, secret) => {
    expect(displayUrl(url)).toBe(shown)
    const split = splitPassword(url)
    expect(split.password).toBe(secret)
    expect(split.url).toBe(shown.replace(':***@', '@').replace('password=***&', ''))
  })

  it('hides a password with unescaped characters', () => {
    expect(displayUrl('postgres://crm:a@b/c?d@host/crm')).toBe('postgres://crm:***@host/crm')
  })

  it('and the settings of its connections are read', () => {
    const { config } = readConfig({
      ACCORD_DATABASE_URL: 'postgresql://host/crm',
      ACCORD_DATABASE_POOLER: 'transaction',
      ACCORD_DATABASE_CONNECTIONS: '3',
    })
    expect(config).toMatchObject({
      databaseUrl: 'postgresql://host/crm',
      databasePooler: 'transaction',
      databaseConnections: 3,
    })
    expect(() => readConfig({ ACCORD_DATABASE_URL: 'mysql://crm:secret@host/crm' })).toThrow(
      'ACCORD_DATABASE_URL must start with sqlite: or postgres://, not "mysql:".',
    )
  })
})
