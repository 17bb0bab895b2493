// Fills a data folder with N leads, always the same for the same N. The folder is reused until a
// table or this code changes. `npx tsx test/bench/fill.ts --leads 1000000 --to <folder>` creates a
// folder for `accord serve`.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type Database from 'better-sqlite3'
import { migrate } from '../../db/migrate.ts'
import { documentId } from '../../db/search/document-ids.ts'
import { Sqlite } from '../../db/sqlite/driver.ts'
import { withFunctions } from '../../db/sqlite/functions.ts'
import { discardSmallTableStatistics } from '../../db/sqlite/maintenance/planner-statistics.ts'
import { openStore } from '../../db/store.ts'
import { publishContract } from '../../src/installation/data-folder.ts'
import { hashPassword } from '../../src/kernel/auth/passwords.ts'
import { issueToken } from '../../src/kernel/auth/tokens.ts'
import { searchDocuments } from '../../src/operations.ts'
import { startServer, testConfig } from '../support/app.ts'
import type { Density } from './fill.insert.ts'
import { fillRows } from './fill.rows.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const seed = 6
const secret = 'secret of the benchmark, at least thirty-two characters'

/** The facts that a measurement needs, stored in `bench.json` beside `data`. */
export interface Filled {
  folder: string
  leads: number
  token: string
  email: string
  password: string
  fingerprint: string
  search: string
  migrations: string[]
}

const hashOf = (text: string | Buffer): string => createHash('sha256').update(text).digest('hex').slice(0, 16)
const read = (path: string): Buffer => readFileSync(join(root, path))

/**
 * Hashes the sources that determine the content of a filled database, except migrations and the
 * search index.
 */
function fingerprintOf(leads: number, density: Density): string {
  const own = readdirSync(join(root, 'test/bench')).filter((name) => /^fill.*\.ts$/.test(name))
  const paths = ['db/schema/columns.ts', 'db/seed.ts']
  const files = [...paths, ...own.sort().map((name) => `test/bench/${name}`)]
  return hashOf([leads, density, ...files.map((path) => hashOf(read(path)))].join())
}

/** Hashes the sources of the search index. If only these changed, only the index is rebuilt. */
const searchFingerprint = (): string =>
  hashOf(
    ['db/search/documents.ts', 'db/search/document-ids.ts', 'db/sqlite/full-text-tables.ts']
      .map((path) => hashOf(read(path)))
      .join(),
  )

/** Hashes each migration, in order. */
const migrations = (): string[] =>
  readdirSync(join(root, 'db/migrations'))
    .filter((name) => name.endsWith('.ts'))
    .sort()
    .map((name) => `${name} ${hashOf(read(`db/migrations/${name}`))}`)

/** Returns the path of a folder that is kept between runs. */
export const keptFolder = (leads: number, density: Density = 'some'): string =>
  join(tmpdir(), 'accord-bench', density === 'some' ? `${leads}` : `${leads}-${density}`)

/** Fills the folder, or reuses it when it is up to date. */
export async function fill(
  folder: string,
  leads: number,
  say: (text: string) => void = () => {},
  density: Density = 'some',
): Promise<Filled> {
  const note = join(folder, 'bench.json')
  const fingerprint = fingerprintOf(leads, density)
  const known = { search: searchFingerprint(), migrations: migrations() }
  const kept = existsSync(note) ? (JSON.parse(readFileSync(note, 'utf8')) as Filled) : null
  if (kept?.fingerprint === fingerprint && kept.migrations.every((each, index) => each === known.migrations[index])) {
    const filled = { ...kept, ...known, folder }
    if (kept.search === known.search && kept.migrations.length === known.migrations.length) return filled
    // If this run is interrupted, the next run fills the folder again.
    rmSync(note)
    await renew(folder, kept.search !== known.search)
    say('brought up to date')
    writeFileSync(note, `${JSON.stringify(filled, null, 2)}\n`)
    return filled
  }
  const dataDir = join(folder, 'data')
  rmSync(note, { force: true })
  rmSync(dataDir, { recursive: true, force: true })
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  const file = join(dataDir, 'accord.db')
  const databaseUrl = `sqlite:${file}`
  publishContract(testConfig({ dataDir, databaseUrl }))
  writeFileSync(join(dataDir, 'secret'), `${secret}\n`, { mode: 0o600 })
  const told = timed(say)
  const start = await installation()
  writeFileSync(file, start.image, { mode: 0o600 })
  told('installed')
  const database = withFunctions(new Sqlite(file))
  // No journal is needed: if this run is killed, `bench.json` is missing and the next run fills the
  // folder again.
  for (const pragma of ['journal_mode = off', 'synchronous = off', 'cache_size = -200000', 'foreign_keys = off'])
    database.pragma(pragma)
  const indexes = takeIndexes(database)
  fillRows(database, leads, density, seed)
  told('rows')
  for (const sql of indexes) database.exec(sql)
  told('indexes')
  await fillSearch(database, databaseUrl)
  told('search index')
  noteSizes(database)
  database.pragma('journal_mode = wal')
  database.close()
  const { token, password } = start
  const filled = { leads, token, email: 'admin@example.com', password, fingerprint, ...known }
  writeFileSync(note, `${JSON.stringify(filled, null, 2)}\n`)
  return { ...filled, folder }
}

/** Migrates as `accord serve` does when it is newer than its database. */
async function renew(folder: string, withSearch: boolean): Promise<void> {
  const file = join(folder, 'data/accord.db')
  const store = openStore(`sqlite:${file}`)
  await migrate(store)
  await store.close()
  // Removes the copy that was made before the migration.
  rmSync(join(folder, 'data/backups'), { recursive: true, force: true })
  const database = withFunctions(new Sqlite(file))
  database.pragma('synchronous = off')
  if (withSearch) await fillSearch(database, `sqlite:${file}`)
  noteSizes(database)
  database.close()
}

/** Updates the planner statistics, as the server does every night. */
function noteSizes(database: Database.Database): void {
  for (const text of ['analyze', ...discardSmallTableStatistics]) database.exec(text)
}

/**
 * Returns an image of a new installation with its administrator, a token without expiry, and two
 * lead attributes.
 */
async function installation(): Promise<{ image: Buffer; token: string; password: string }> {
  const password = 'correct horse battery'
  const server = await startServer()
  const now = new Date().toISOString()
  server.clock.set(now)
  for (const [code, name, type] of [
    ['region', 'Region', 'text'],
    ['seats', 'Seats', 'price'],
  ]) {
    const made = await server.admin.post('/settings/attributes', { code, name, type, entity_type: 'leads' })
    if (made.status !== 201) throw new Error(`The attribute ${code} could not be made: ${made.text}`)
  }
  const { db } = server.store
  // Uses the hash parameters of production, because the benchmark measures logins.
  const password_hash = await hashPassword(testConfig({ passwordMemoryKiB: 19 * 1024 }), password)
  await db.updateTable('users').set({ password_hash }).where('id', '=', 1).execute()
  const terms = { abilities: ['*'], expiresAt: null, allowedIps: [] } as const
  const token = await issueToken(db, { userId: 1, name: 'bench', kind: 'personal', ...terms }, now)
  const image = await server.store.image()
  await server.close()
  return { image, token: token.text, password }
}

/** Drops the indexes that are not unique. Creating them again after the inserts is much faster. */
function takeIndexes(database: Database.Database): string[] {
  const found = database
    .prepare(
      `select name, sql from sqlite_schema where type = 'index' and sql is not null and sql not like 'create unique%'`,
    )
    .all() as { name: string; sql: string }[]
  for (const { name } of found) database.exec(`drop index "${name}"`)
  return found.map(({ sql }) => sql)
}

/** Fills the search index like a rebuild of the program, but with prepared statements. */
async function fillSearch(database: Database.Database, url: string): Promise<void> {
  const store = openStore(url)
  const { fullText } = store.dialect
  const untyped = store.db as unknown as Parameters<typeof fullText.drop>[0]
  await fullText.drop(untyped, 'search_index')
  database.exec('delete from search_index')
  const insert = database.prepare(
    'insert into search_index (id, entity_type, entity_id, title, subtitle, body) values (?, ?, ?, ?, ?, ?)',
  )
  const limit = 5_000
  for (const { entity, read } of searchDocuments) {
    for (let after = 0; ; ) {
      const documents = await read(store.db, { after, limit })
      database.transaction(() => {
        for (const { id, title, subtitle, body } of documents)
          insert.run(documentId(entity, id), entity, id, title, subtitle, body)
      })()
      if (documents.length < limit) break
      after = documents.at(-1)?.id ?? 0
    }
  }
  await fullText.create(untyped, 'search_index')
  await store.close()
}

function timed(say: (text: string) => void): (step: string) => void {
  let since = performance.now()
  return (step) => {
    const at = performance.now()
    say(`${step}: ${((at - since) / 1000).toFixed(1)} s`)
    since = at
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({ options: { leads: { type: 'string', default: '10000' }, to: { type: 'string' } } })
  const leads = Number(values.leads)
  const { folder } = await fill(resolve(values.to ?? keptFolder(leads)), leads, console.log)
  console.log(`${leads} leads are in ${folder}/data; token and password in ${folder}/bench.json.`)
}
