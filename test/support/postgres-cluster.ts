// Starts a PostgreSQL cluster for a test run: on loopback, in memory where possible, and without
// syncs. If this process is root, the server runs as another user, because PostgreSQL refuses to
// run as root.

import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  appendFileSync,
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import pg from 'pg'
import { freePort } from './free-port.ts'
import { findPostgres } from './programs.ts'

export interface Cluster {
  /** Returns the URL of a database. The database `postgres` always exists. */
  url(database: string): string
  /** The folder of programs such as pg_dump. */
  readonly programs: string
  readonly folder: string
  readonly port: number
  /** Runs a server program with this cluster's data folder, as the user of the server. */
  run(program: string, ...args: string[]): void
  /** Runs a statement as the superuser. */
  query<Row = Record<string, unknown>>(database: string, text: string): Promise<Row[]>
  stop(): void
  /** Promotes a standby to a primary. Resolves when it accepts writes. */
  promote(): Promise<void>
  /** Kills the server like a crash. `stop` must still be called. */
  kill(): void
}

export interface ClusterOptions {
  /** Lines of postgresql.conf. */
  settings?: readonly string[]
  /** The parent of the cluster folder. The default is in memory, if possible. */
  within?: string
}

/** The user that runs the server if this process is root, or else null. */
interface ServerUser {
  uid: number
  gid: number
}

/** Returns the user that must run the server if this process is root, or else null. */
export function serverUser(): ServerUser | null {
  if (process.getuid?.() !== 0) return null
  const idOf = (option: string, name: string): number | null => {
    const { status, stdout } = spawnSync('id', [option, name], { encoding: 'utf8' })
    return status === 0 ? Number(stdout) : null
  }
  const name = ['postgres', 'nobody'].find((each) => idOf('-u', each) !== null) ?? ''
  return { uid: idOf('-u', name) ?? 65_534, gid: idOf('-g', name) ?? 65_534 }
}

/**
 * Returns the program folder for this user. A folder that the user cannot read, such as a checkout
 * below /root, is copied once into the folder of temporary files.
 */
function readablePrograms(programs: string, user: ServerUser | null): string {
  if (user === null) return programs
  const canRun = (folder: string): boolean =>
    spawnSync(join(folder, 'postgres'), ['--version'], { cwd: '/', stdio: 'ignore', ...user }).status === 0
  if (canRun(programs)) return programs
  const { mtimeMs } = statSync(join(programs, 'postgres'))
  const copy = join(
    tmpdir(),
    `accord-test-postgres-${createHash('sha256').update(`${programs} ${mtimeMs}`).digest('hex').slice(0, 12)}`,
  )
  if (!existsSync(copy)) {
    const partial = mkdtempSync(`${copy}-`)
    chmodSync(partial, 0o755)
    cpSync(dirname(programs), partial, { recursive: true, verbatimSymlinks: true })
    try {
      renameSync(partial, copy)
    } catch {
      // Another process was faster.
      rmSync(partial, { recursive: true, force: true })
    }
  }
  return join(copy, basename(programs))
}

/** Settings for a server whose data may be lost after the run. */
export const fastSettings = [
  'fsync = off',
  'synchronous_commit = off',
  'full_page_writes = off',
  'autovacuum = off',
  'max_connections = 400',
  'shared_buffers = 256MB',
  'max_wal_size = 4GB',
]

export async function startCluster({ settings = fastSettings, within }: ClusterOptions = {}): Promise<Cluster> {
  const cluster = await newCluster(within)
  const { folder, port } = cluster
  cluster.run('initdb', '--no-sync', '-A', 'trust', '-E', 'UTF8', '--locale=C.UTF-8', '-U', 'accord')
  startServer(cluster, [
    `port = ${port}`,
    `listen_addresses = '127.0.0.1'`,
    `unix_socket_directories = '${folder}'`,
    ...settings,
  ])
  return cluster
}

/** Starts a standby that follows the primary under this name. */
export async function startStandby(primary: Cluster, name: string): Promise<Cluster> {
  const cluster = await newCluster()
  const source = `host=127.0.0.1 port=${primary.port} user=accord application_name=${name}`
  cluster.run('pg_basebackup', '-d', source, '-R', '-c', 'fast', '--no-sync')
  startServer(cluster, [`port = ${cluster.port}`, `unix_socket_directories = '${cluster.folder}'`])
  return cluster
}

/** Returns whether the standby has replayed everything that the primary has written up to now. */
export async function hasReplayed(standby: Cluster, primary: Cluster): Promise<boolean> {
  const [position] = await primary.query<{ lsn: string }>('postgres', 'select pg_current_wal_insert_lsn()::text as lsn')
  const [row] = await standby.query<{ ok: boolean }>(
    'postgres',
    `select pg_last_wal_replay_lsn() >= '${position?.lsn}' as ok`,
  )
  return row?.ok === true
}

/** Changes settings of a running server. `settings` are lines of postgresql.conf. */
export function configure({ folder, run }: Cluster, settings: readonly string[]): void {
  appendFileSync(join(folder, 'data', 'postgresql.conf'), [...settings, ''].join('\n'))
  run('pg_ctl', 'reload')
}

function startServer({ folder, run }: Cluster, settings: readonly string[]): void {
  appendFileSync(join(folder, 'data', 'postgresql.conf'), [...settings, ''].join('\n'))
  run('pg_ctl', '-l', join(folder, 'log'), '-w', 'start')
}

async function newCluster(within = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()): Promise<Cluster> {
  const found = findPostgres()
  if (found === null) throw new Error('Install a PostgreSQL server first: apt-get install postgresql')
  const user = serverUser()
  const programs = readablePrograms(found, user)
  const folder = mkdtempSync(join(within, 'accord-postgres-'))
  const data = join(folder, 'data')
  mkdirSync(data, { mode: 0o700 })
  if (user !== null) for (const path of [folder, data]) chownSync(path, user.uid, user.gid)
  chmodSync(folder, 0o755)
  const run = (program: string, ...args: string[]): void => {
    const { status, stderr, error } = spawnSync(join(programs, program), ['-D', data, ...args], {
      encoding: 'utf8',
      stdio: ['ignore', 'ignore', program === 'pg_ctl' ? 'ignore' : 'pipe'],
      // The user of the server may not have access to the current directory.
      cwd: folder,
      ...user,
    })
    if (status !== 0) throw new Error(`${program} failed: ${error?.message ?? stderr}`)
  }
  const port = await freePort()
  let killed: { memory: string } | undefined
  const url = (database: string): string => `postgres://accord@127.0.0.1:${port}/${database}`
  return {
    programs,
    folder,
    port,
    run,
    url,
    async query<Row>(database: string, text: string) {
      const client = new pg.Client(url(database))
      await client.connect()
      try {
        return (await client.query(text)).rows as Row[]
      } finally {
        await client.end()
      }
    },
    stop() {
      if (killed === undefined) run('pg_ctl', '-m', 'immediate', 'stop')
      // A killed server leaves its shared memory segment behind.
      else spawnSync('ipcrm', ['-m', killed.memory])
      rmSync(folder, { recursive: true, force: true })
    },
    promote: () =>
      new Promise((resolve, reject) => {
        const child = spawn(join(programs, 'pg_ctl'), ['-D', data, '-w', 'promote'], {
          ...{ cwd: folder, stdio: 'ignore', ...user },
        })
        child.on('error', reject)
        child.on('close', (code) => (code === 0 ? resolve() : reject(new Error(`pg_ctl promote ended with ${code}`))))
      }),
    kill() {
      const lines = readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')
      killed = { memory: lines[6]?.trim().split(/\s+/)[1] ?? '' }
      process.kill(Number(lines[0]), 'SIGKILL')
    },
  }
}
