// Starts the servers that scale.ts measures: on SQLite, and with several numbers of processes on a
// PostgreSQL database with the same data. Every commit waits for the disk.
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { startCluster } from '../support/postgres-cluster.ts'
import type { Filled } from './fill.ts'
import { copyOf, remove, type Server, start } from './servers.ts'

export interface Target {
  name: string
  url: string
  /** Other servers of the target. */
  others: string[]
  /** The process ids of the servers, and of the database server. */
  servers: number[]
  databases: number[]
}

/** The memory settings for a small machine. All other settings have their defaults. */
const settings = ['shared_buffers = 1GB', 'max_wal_size = 4GB', 'max_connections = 300']
/** Background work is off, because idle servers would do it for the measured server. */
const usual = { ACCORD_WORKER: 'off' }
const built = fileURLToPath(new URL('../../dist/src/cli.js', import.meta.url))

export interface Targets {
  targets: Target[]
  close(): Promise<void>
}

export async function openTargets(
  filled: Filled,
  processes: readonly number[],
  say: (text: string) => void,
): Promise<Targets> {
  const cluster = await startCluster({ settings, within: tmpdir() })
  const folders: string[] = []
  const running: Server[] = []
  const begin = async (folder: string, more: Parameters<typeof start>[2] = {}): Promise<Server> => {
    const server = await start('accord', folder, { ...more, settings: { ...usual, ...more.settings } })
    running.push(server)
    return server
  }
  const close = async (): Promise<void> => {
    for (const server of running) await server.stop()
    cluster.stop()
    folders.forEach(remove)
  }
  try {
    const since = performance.now()
    const url = await copyToPostgres(filled.folder, cluster.url)
    say(`copied to PostgreSQL: ${((performance.now() - since) / 1000).toFixed(1)} s`)
    const folder = copyOf(filled.folder)
    folders.push(folder)
    const [one, two] = [await begin(folder), await begin(folder)]
    const targets = [target('SQLite', [one]), target('SQLite, 2 servers', [one, two])]
    const own = folderWithoutDatabase(filled.folder)
    folders.push(own)
    const postmaster = Number(readFileSync(join(cluster.folder, 'data/postmaster.pid'), 'utf8').split('\n')[0])
    for (const count of processes) {
      const server = await begin(own, { processes: count, settings: { ACCORD_DATABASE_URL: url } })
      targets.push(target(`PostgreSQL, ${count}`, [server], [postmaster]))
    }
    return { targets, close }
  } catch (error) {
    await close()
    throw error
  }
}

const target = (name: string, [first, ...others]: Server[], databases: number[] = []): Target => ({
  name,
  url: first?.url ?? '',
  others: others.map(({ url }) => url),
  servers: [first, ...others].map((server) => server?.pid ?? 0),
  databases,
})

async function copyToPostgres(folder: string, urlOf: (database: string) => string): Promise<string> {
  const name = 'accord_bench'
  const run = async (database: string, ...statements: string[]): Promise<void> => {
    const client = new pg.Client(urlOf(database))
    await client.connect()
    for (const statement of statements) await client.query(statement)
    await client.end()
  }
  await run('postgres', `create database ${name}`)
  execFileSync(process.execPath, [built, 'migrate-to', urlOf(name)], {
    cwd: folder,
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  // PostgreSQL would do this automatically some time after the copy.
  await run(name, 'vacuum analyze', 'checkpoint')
  return urlOf(name)
}

function folderWithoutDatabase(folder: string): string {
  const copy = mkdtempSync(join(tmpdir(), 'accord-bench-run-'))
  mkdirSync(join(copy, 'data'), { mode: 0o700 })
  cpSync(join(folder, 'data'), join(copy, 'data'), {
    recursive: true,
    filter: (path) => !/accord\.db/.test(path),
  })
  return copy
}
