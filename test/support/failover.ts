// A failover drill: a primary with a synchronous standby, an Accord server with both hosts in its
// URL, and clients that write. The primary is killed and the standby is promoted while the clients
// continue.

import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { accordServing, type Serving } from './accord.ts'
import { adminPassword } from './app.ts'
import { type Cluster, configure, startCluster, startStandby } from './postgres-cluster.ts'

export interface DrillOptions {
  writers: number
  /** The time that clients write before the primary is killed, and after writes succeed again. */
  beforeMs: number
  afterMs: number
  /** The time between the kill of the primary and the promotion of the standby. */
  promotionMs: number
}

export interface DrillReport {
  acknowledged: number
  acknowledgedBeforeKill: number
  /** The number of acknowledged writes that are missing on the new primary. */
  lost: number
  /** The number of writes that exist more than once on the new primary. */
  repeated: number
  /** The number of writes that failed first and were retried with the same key. */
  retried: number
  /** The number of error responses by status. `network` counts requests without a response. */
  errors: Record<string, number>
  /** The number of 503 responses without Retry-After. */
  withoutRetryAfter: number
  /**
   * The seconds from the kill of the primary until the first acknowledged write that began later.
   */
  downtimeS: number
  /** The part of the downtime after the standby was ready for writes, in seconds. */
  recoveryS: number
  /** The results of /readyz in order, without consecutive duplicates. */
  readiness: string[]
  /** Whether the Accord process never restarted. */
  isSameProcess: boolean
}

/** The pause of a client before it retries a write. It is part of the measured downtime. */
const pauseMs = 100
const standbyName = 'accord_standby'
/** Settings for a server whose process may crash, but not its machine. */
const settings = [
  ...['fsync = off', 'shared_buffers = 64MB'],
  // Shared memory is in files of the cluster folder, so a killed server leaves no segments behind.
  'dynamic_shared_memory_type = mmap',
]

export interface FailoverScene {
  /** Runs the drill. Can be called only once, because it kills the primary. */
  drill(options: DrillOptions): Promise<DrillReport>
  close(): Promise<void>
}

export async function openFailoverScene(): Promise<FailoverScene> {
  const closers: (() => unknown)[] = []
  const close = async (): Promise<void> => {
    for (const each of closers.splice(0).reverse()) await each()
  }
  try {
    const folder = mkdtempSync(join(tmpdir(), 'accord-failover-'))
    closers.push(() => rmSync(folder, { recursive: true, force: true }))
    const primary = await startCluster({ settings })
    closers.push(() => primary.stop())
    const standby = await startStandby(primary, standbyName)
    closers.push(() => standby.stop())
    configure(primary, [`synchronous_standby_names = '${standbyName}'`])
    await primary.query('postgres', 'create database crm')
    const server = await serveOn(folder, [primary, standby])
    closers.push(() => server.stop())
    const token = await signIn(server.url)
    return { drill: (options) => drill({ primary, standby, server, token }, options), close }
  } catch (error) {
    await close()
    throw error
  }
}

interface Parts {
  primary: Cluster
  standby: Cluster
  server: Serving
  token: string
}

const serveOn = (folder: string, clusters: readonly Cluster[]): Promise<Serving> =>
  accordServing(folder, 'start', {
    ACCORD_DATA_DIR: join(folder, 'data'),
    ACCORD_DATABASE_URL: `postgres://accord@${clusters.map(({ port }) => `127.0.0.1:${port}`).join(',')}/crm?target_session_attrs=read-write`,
    ACCORD_ADMIN_PASSWORD: adminPassword,
    ACCORD_LOG_LEVEL: 'warn',
  })

async function drill({ primary, standby, server, token }: Parts, options: DrillOptions): Promise<DrillReport> {
  const load = startLoad(server.url, token, options.writers)
  const readiness = watchReadiness(server.url)
  // Waits for the first write, because the first requests compile validators.
  await load.firstBegunAfter(0)
  await sleep(options.beforeMs)
  const acknowledgedBeforeKill = load.acknowledged.length
  primary.kill()
  const killedAt = performance.now()
  await sleep(options.promotionMs)
  await standby.promote()
  const promotedAt = performance.now()
  const first = await load.firstBegunAfter(killedAt)
  await sleep(options.afterMs)
  const { retried, errors, withoutRetryAfter } = await load.stop()
  const stored = await standby.query<{ name: string; count: string }>(
    'crm',
    `select name, count(*) from persons where name like 'drill %' group by name`,
  )
  const names = new Set(stored.map(({ name }) => name))
  return {
    acknowledged: load.acknowledged.length,
    acknowledgedBeforeKill,
    lost: load.acknowledged.filter(({ name }) => !names.has(name)).length,
    repeated: stored.filter(({ count }) => Number(count) > 1).length,
    retried,
    errors,
    withoutRetryAfter,
    downtimeS: Math.round(first - killedAt) / 1000,
    recoveryS: Math.round(first - promotedAt) / 1000,
    readiness: await readiness.stop(),
    isSameProcess: await isRunning(server),
  }
}

interface Write {
  name: string
  begunAt: number
  endedAt: number
}

function startLoad(url: string, token: string, writers: number) {
  const acknowledged: Write[] = []
  const counts = { retried: 0, errors: {} as Record<string, number>, withoutRetryAfter: 0 }
  let isOver = false

  /** Sends a write with one idempotency key until it succeeds. */
  async function write(): Promise<void> {
    const key = randomUUID()
    const name = `drill ${key}`
    for (let attempt = 0; ; attempt++) {
      const begunAt = performance.now()
      const { status, hasRetryAfter } = await send(url, token, key, name)
      if (attempt === 1) counts.retried += 1
      if (status === '201') return void acknowledged.push({ name, begunAt, endedAt: performance.now() })
      counts.errors[status] = (counts.errors[status] ?? 0) + 1
      if (status === '503' && !hasRetryAfter) counts.withoutRetryAfter += 1
      await sleep(pauseMs)
    }
  }
  async function writeOn(): Promise<void> {
    while (!isOver) await write()
  }
  const working = Array.from({ length: writers }, writeOn)
  return {
    acknowledged,
    /** Resolves with the end time of the first acknowledged write that began after `time`. */
    async firstBegunAfter(time: number): Promise<number> {
      for (;;) {
        const found = acknowledged.find(({ begunAt }) => begunAt > time)
        if (found) return found.endedAt
        await sleep(10)
      }
    },
    async stop() {
      isOver = true
      await Promise.all(working)
      return counts
    },
  }
}

async function send(url: string, token: string, key: string, name: string) {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'idempotency-key': key }
  try {
    const reply = await fetch(`${url}/api/admin/contacts/persons`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ name }),
      signal: AbortSignal.timeout(30_000),
    })
    await reply.arrayBuffer()
    return { status: String(reply.status), hasRetryAfter: reply.headers.has('retry-after') }
  } catch {
    return { status: 'network', hasRetryAfter: false }
  }
}

function watchReadiness(url: string) {
  const told: string[] = []
  let isOver = false
  const working = (async () => {
    while (!isOver) {
      const reply = await fetch(`${url}/readyz`)
      const body = (await reply.json()) as { checks?: { database_role?: string }; database_role?: string }
      const now = `${reply.status} ${body.checks?.database_role ?? body.database_role ?? 'no role'}`
      if (told.at(-1) !== now) told.push(now)
      await sleep(pauseMs)
    }
  })()
  return {
    async stop(): Promise<string[]> {
      isOver = true
      await working
      return told
    },
  }
}

async function signIn(url: string): Promise<string> {
  const reply = await fetch(`${url}/api/admin/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email: 'admin@example.com', password: adminPassword, device_name: 'drill' }),
  })
  const { data } = (await reply.json()) as { data: { token: string } }
  return data.token
}

async function isRunning({ pid, url }: Serving): Promise<boolean> {
  process.kill(pid, 0)
  return (await fetch(`${url}/healthz`)).ok
}
