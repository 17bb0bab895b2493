// Runs once before all tests. Starts PostgreSQL when ACCORD_TEST_ENGINE is `postgres`.

import { startCluster } from './postgres-cluster.ts'

export async function setup(): Promise<(() => void) | undefined> {
  if (process.env.ACCORD_TEST_ENGINE !== 'postgres' || process.env.ACCORD_TEST_POSTGRES_URL) return undefined
  const cluster = await startCluster()
  process.env.ACCORD_TEST_POSTGRES_URL = cluster.url('postgres')
  return () => cluster.stop()
}
