// Starts PgBouncer in transaction mode on loopback, in front of a PostgreSQL server.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { freePort } from './free-port.ts'
import { serverUser } from './postgres-cluster.ts'
import { findProgram } from './programs.ts'
import { until } from './until.ts'

export interface PgBouncer {
  /** Returns the URL of a database through the pooler. */
  through(url: string): string
  stop(): Promise<void>
}

/** Starts a pooler with at most `connections` server connections for each database. */
export async function startPgBouncer(server: URL, connections: number): Promise<PgBouncer> {
  const folder = mkdtempSync(join(tmpdir(), 'accord-pgbouncer-'))
  const port = await freePort()
  const users = join(folder, 'users.txt')
  writeFileSync(users, `"${server.username}" ""\n`)
  const settings = [
    ...['[databases]', `* = host=${server.hostname} port=${server.port}`, '[pgbouncer]'],
    ...['listen_addr = 127.0.0.1', `listen_port = ${port}`, 'unix_socket_dir ='],
    ...['auth_type = trust', `auth_file = ${users}`, 'pool_mode = transaction'],
    ...[`default_pool_size = ${connections}`, 'max_client_conn = 200', 'log_connections = 0', 'log_disconnections = 0'],
  ]
  const file = join(folder, 'pgbouncer.ini')
  writeFileSync(file, settings.join('\n'))
  // PgBouncer refuses to run as root.
  chmodSync(folder, 0o755)
  const child = spawn(findProgram('pgbouncer') ?? '', ['-q', file], { cwd: folder, stdio: 'ignore', ...serverUser() })
  const ended = once(child, 'close')
  const through = (url: string): string => {
    const changed = new URL(url)
    changed.port = String(port)
    return changed.href
  }
  await until(() => answers(through(server.href)))
  return {
    through,
    async stop() {
      child.kill('SIGKILL')
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function answers(connectionString: string): Promise<boolean> {
  const client = new pg.Client({ connectionString })
  try {
    await client.connect()
    await client.end()
    return true
  } catch {
    return false
  }
}
