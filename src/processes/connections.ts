// Checks at the start that the PostgreSQL server allows the connections of all processes. Without
// this check, requests would fail under load, when the last connection is taken.
import { connectionLimit } from '../../db/postgres/connection-limit.ts'
import type { Store } from '../../db/store.ts'
import { type Config, ConfigError } from '../config/config.ts'
import { maxExportsAtOnce } from '../kernel/resource/export.ts'

/** Throws ConfigError when `count` processes could open more connections than are allowed. */
export async function assertConnections(config: Config, store: Store, count: number): Promise<void> {
  // With a pooler, the limit does not apply: the pooler shares its connections among all clients.
  if (config.databasePooler === 'transaction') return
  const limit = await connectionLimit(store.db)
  if (count * connectionsOfProcess(config.databaseConnections) <= limit) return
  const most = Math.floor((Math.floor(limit / count) - maxExportsAtOnce) / 2)
  const advice = most >= 1 ? `Set it to at most ${most}, start fewer processes` : `Start fewer processes`
  throw new ConfigError(
    'ACCORD_DATABASE_CONNECTIONS',
    `is ${config.databaseConnections}: ${count} processes may open ${count * connectionsOfProcess(config.databaseConnections)} connections, and the PostgreSQL server allows ${limit}. ${advice}, or raise max_connections.`,
  )
}

/**
 * Returns the maximum number of connections of one process: a pool for reads, a pool for writes,
 * and one connection per export.
 */
const connectionsOfProcess = (max: number): number => 2 * max + maxExportsAtOnce
