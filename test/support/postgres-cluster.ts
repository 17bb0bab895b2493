// A PostgreSQL cluster for one run of the tests: on loopback, in memory where possible, without
// syncs. PostgreSQL refuses to run as root, so root starts it as another user.

import { execFileSync, spawnSync } from 'node:child_process'
import { appendFileSync, chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Cluster {
  /** The URL of a database; `postgres` is the one that always exists. */
  url(database: string): string
  /** The folder of the programs, such as pg_dump. */
  readonly programs: string
  readonly folder: string
  stop(): void
}

export interface ClusterOptions {
  /** Lines of postgresql.conf. */
  settings?: readonly string[]
  /** The folder in which the cluster gets a folder of its own; by default in memory if possible. */
  within?: string
}

const debianFolder = '/usr/lib/postgresql'

/** The folder of the newest installed server; null when there is none. */
export function findPrograms(): string | null {
  const given = process.env.ACCORD_TEST_POSTGRES_BIN
  if (given) return given
  if (!existsSync(debianFolder)) return null
  const versions = readdirSync(debianFolder).sort((one, other) => Number(other) - Number(one))
  return (
    versions.map((version) => join(debianFolder, version, 'bin')).find((bin) => existsSync(join(bin, 'initdb'))) ?? null
  )
}

/** The user that runs the server, when this process is root. */
function serverUser(): { uid: number; gid: number } | null {
  if (process.getuid?.() !== 0) return null
  const idOf = (option: string): number => Number(execFileSync('id', [option, 'postgres'], { encoding: 'utf8' }))
  return { uid: idOf('-u'), gid: idOf('-g') }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.on('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0))
    })
  })
}

/** Settings of a server whose data need not survive the run. */
export const fastSettings = [
  'fsync = off',
  'synchronous_commit = off',
  'full_page_writes = off',
  'autovacuum = off',
  'max_connections = 400',
  'shared_buffers = 256MB',
  'max_wal_size = 4GB',
]

export async function startCluster({
  settings = fastSettings,
  within = existsSync('/dev/shm') ? '/dev/shm' : tmpdir(),
}: ClusterOptions = {}): Promise<Cluster> {
  const programs = findPrograms()
  if (programs === null) throw new Error('Install a PostgreSQL server first: apt-get install postgresql')
  const folder = mkdtempSync(join(within, 'accord-postgres-'))
  const user = serverUser()
  const data = join(folder, 'data')
  mkdirSync(data)
  if (user !== null) for (const path of [folder, data]) chownSync(path, user.uid, user.gid)
  chmodSync(folder, 0o755)
  const run = (program: string, ...args: string[]): void => {
    const { status, stderr, error } = spawnSync(join(programs, program), args, {
      encoding: 'utf8',
      stdio: ['ignore', 'ignore', program === 'pg_ctl' ? 'ignore' : 'pipe'],
      // The user of the server may not enter the folder of this process.
      cwd: folder,
      ...user,
    })
    if (status !== 0) throw new Error(`${program} failed: ${error?.message ?? stderr}`)
  }
  const port = await freePort()
  run('initdb', '-D', data, '--no-sync', '-A', 'trust', '-E', 'UTF8', '--locale=C.UTF-8', '-U', 'accord')
  const own = [`port = ${port}`, `listen_addresses = '127.0.0.1'`, `unix_socket_directories = '${folder}'`]
  appendFileSync(join(data, 'postgresql.conf'), [...own, ...settings, ''].join('\n'))
  run('pg_ctl', '-D', data, '-l', join(folder, 'log'), '-w', 'start')
  return {
    programs,
    folder,
    url: (database) => `postgres://accord@127.0.0.1:${port}/${database}`,
    stop() {
      run('pg_ctl', '-D', data, '-m', 'immediate', 'stop')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
