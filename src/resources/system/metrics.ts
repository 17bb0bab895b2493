// GET /metrics: the counters of the process, and metrics from database rows and files.
// Queries for metrics count a limited number of rows, and their results are cached for 5 seconds.
import { stat } from 'node:fs/promises'
import type { Kysely } from 'kysely'
import { Gauge, Registry } from 'prom-client'
import { storageFaultOf } from '../../../db/storage-errors.ts'
import { databaseFile, engineOf } from '../../../db/store.ts'
import { operations } from '../../contract/operations.gen.ts'
import { version } from '../../installation/package-info.ts'
import { schedulerLock, schedulerLockMs } from '../../jobs/scheduler.ts'
import { isInRanges, isLoopback } from '../../kernel/auth/ip-ranges.ts'
import { authenticate, unauthenticated } from '../../kernel/auth/tokens.ts'
import { assertCanCall, type Context, now } from '../../kernel/context.ts'
import { download } from '../../kernel/files/download.ts'
import type { Handlers, PublicGuards } from '../../kernel/handler.ts'
import { ttlCache } from '../../kernel/runtime/ttl-cache.ts'
import { newestEvent } from '../../kernel/write/event-log.ts'
import { mailJobKinds } from './mail-job-kinds.ts'
import { webhookStates, webhookTotals } from './webhook-health.ts'

/**
 * The maximum number of rows that a metric counts, so that monitoring is cheap during a backlog.
 */
const maxCounted = 10_000

/**
 * Throws 401 or 403 unless the caller runs on this machine or has a token that may read reports.
 */
async function admit(ctx: Context): Promise<void> {
  if (isOfThisMachine(ctx)) return
  const authorization = [ctx.headers.authorization].flat()[0]
  if (authorization === undefined) throw unauthenticated()
  const caller = await authenticate(ctx.services, authorization, ctx.ip ?? '')
  const { permission, ability } = operations.getOverviewReport
  assertCanCall({ ...ctx, ...caller }, { permission, ability })
}

const forwarding =
  /^(x-forwarded(-.*)?|x-real-ip|x-client-ip|x-cluster-client-ip|true-client-ip|cf-connecting-ip|forwarded|via)$/

/**
 * Returns whether the caller runs on this machine. A local proxy connects from this machine too,
 * but forwards requests of remote callers. A request therefore counts as remote when it has a
 * forwarding header, the address of a trusted proxy, or a host name that is not local.
 */
function isOfThisMachine({ ip, headers, requestOrigin, services: { config } }: Context): boolean {
  if (Object.keys(headers).some((name) => forwarding.test(name))) return false
  if (isInRanges(ip ?? '', config.trustedProxies)) return false
  const host = URL.canParse(requestOrigin) ? new URL(requestOrigin).hostname.replace(/^\[(.*)\]$/, '$1') : ''
  return isLoopback(ip ?? '') && (host === 'localhost' || isLoopback(host))
}

type Sample = [labels: Record<string, string>, value: number]

async function figuresOf(ctx: Context): Promise<string> {
  const registry = new Registry()
  const gauge = (name: string, help: string, samples: readonly Sample[]): void => {
    if (samples.length === 0) return
    const labelNames = [...new Set(samples.flatMap(([labels]) => Object.keys(labels)))]
    const samplesGauge = new Gauge({ name: `accord_${name}`, help, labelNames, registers: [registry] })
    for (const [labels, value] of samples) samplesGauge.set(labels, value)
  }
  gauge('build_info', 'The running version.', [[{ version, node: process.versions.node }, 1]])
  gauge('jobs', `Jobs by kind and state, ${maxCounted} of a state at most.`, await jobs(ctx))
  gauge('jobs_oldest_due_age_seconds', 'How long the oldest due job has been waiting.', [[{}, await oldestDue(ctx)]])
  const readers = await lags(ctx)
  gauge('event_reader_lag_events', 'Events that an event consumer has not processed.', readers.events)
  gauge('event_reader_lag_seconds', 'Age of the oldest of these events.', readers.seconds)
  const locks = await lockTimes(ctx)
  gauge('worker_up', 'Whether a worker of any process has polled for work recently.', [
    [{}, (locks.get('worker') ?? '') >= now(ctx) ? 1 : 0],
  ])
  const held = locks.get(schedulerLock)
  gauge('scheduler_last_run_timestamp_seconds', 'When the scheduler last ran, as Unix time.', [
    ...(held === undefined ? [] : [[{}, (Date.parse(held) - schedulerLockMs) / 1000] satisfies Sample]),
  ])
  gauge('schedule_last_due_timestamp_seconds', 'The last due time of a schedule, as Unix time.', await schedules(ctx))
  gauge('tokens', `Tokens that are not expired, ${maxCounted} at most.`, [[{}, await countUnexpired(ctx, 'tokens')]])
  gauge('sessions', `Sessions that are not expired, ${maxCounted} at most.`, [
    [{}, await countUnexpired(ctx, 'sessions')],
  ])
  const webhooks = webhookTotals(await webhookStates(ctx.db, ctx.services.sights))
  gauge('webhooks_failing', 'Webhooks whose last delivery failed, and those the server has switched off.', [
    [{}, webhooks.failing],
  ])
  gauge('webhook_deliveries_waiting', `Deliveries that wait for an attempt, ${maxCounted} of a webhook at most.`, [
    [{}, webhooks.waiting],
  ])
  gauge('database_bytes', 'Size of the database, and of the write-ahead log of SQLite.', await databaseBytes(ctx))
  const room = await ctx.services.disk.room()
  if (room) {
    gauge('disk_free_bytes', 'Free bytes on the disk of the data folder.', [[{}, room.free]])
    gauge('disk_size_bytes', 'Size of the disk of the data folder.', [[{}, room.size]])
  }
  return registry.metrics()
}

async function jobs({ db }: Context): Promise<Sample[]> {
  const samples: Sample[] = []
  for (const state of ['waiting', 'blocked', 'running', 'buried'] as const) {
    const some = db.selectFrom('jobs').select('kind').where('state', '=', state).limit(maxCounted)
    const rows = await db
      .selectFrom(some.as('some'))
      .select(({ fn }) => ['kind', fn.countAll<number>().as('count')])
      .groupBy('kind')
      .execute()
    samples.push(...rows.map(({ kind, count }): Sample => [{ kind, state }, count]))
  }
  return samples
}

async function oldestDue({ db, time, services }: Context): Promise<number> {
  const due = await db
    .selectFrom('jobs')
    .select(['run_at', 'kind'])
    .where('state', '=', 'waiting')
    .where('run_at', '<=', time.toISOString())
    // Without a configured mail server, waiting mail jobs are not a backlog.
    .$if(!services.mailer.isConfigured, (query) => query.where('kind', 'not in', mailJobKinds(services)))
    .orderBy('run_at')
    .limit(1)
    .executeTakeFirst()
  return due ? ageOf(due.run_at, time) : 0
}

const ageOf = (at: string, time: Date): number => Math.max(0, (time.getTime() - Date.parse(at)) / 1000)

async function lags(ctx: Context): Promise<{ events: Sample[]; seconds: Sample[] }> {
  const newest = await newestEvent(ctx)
  const readers = await ctx.db.selectFrom('event_readers').select(['name', 'last_event_id']).execute()
  const seconds: Sample[] = []
  for (const { name, last_event_id: place } of readers) {
    const next = ctx.db.selectFrom('events').select('created_at').where('id', '>', place).orderBy('id').limit(1)
    const event = await next.executeTakeFirst()
    seconds.push([{ reader: name }, event ? ageOf(event.created_at, ctx.time) : 0])
  }
  return {
    events: readers.map(({ name, last_event_id: place }) => [{ reader: name }, Math.max(0, newest - place)]),
    seconds,
  }
}

async function lockTimes({ db }: Context): Promise<Map<string, string>> {
  const rows = await db.selectFrom('locks').select(['name', 'locked_until']).execute()
  return new Map(rows.map(({ name, locked_until: until }) => [name, until]))
}

async function schedules({ db }: Context): Promise<Sample[]> {
  const rows = await db.selectFrom('schedules').select(['name', 'last_due_at']).execute()
  return rows.map(({ name, last_due_at: due }) => [{ schedule: name }, Date.parse(due) / 1000])
}

async function countUnexpired(ctx: Context, table: 'tokens' | 'sessions'): Promise<number> {
  const some = ctx.db
    .selectFrom(table)
    .select('id')
    .where((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', now(ctx))]))
    .limit(maxCounted)
  const { count } = await ctx.db
    .selectFrom(some.as('some'))
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow()
  return count
}

async function databaseBytes({ db, services: { store } }: Context): Promise<Sample[]> {
  if (engineOf(store.url) === 'postgres')
    return [[{ part: 'data' }, await store.dialect.copies.sizeOf(db as unknown as Kysely<unknown>)]]
  const file = databaseFile(store.url)
  if (file === null) return []
  const sizeOf = async (part: string, path: string): Promise<Sample[]> => {
    const found = await stat(path).catch(() => undefined)
    return found ? [[{ part }, found.size]] : []
  }
  return [...(await sizeOf('data', file)), ...(await sizeOf('log', `${file}-wal`))]
}

const latestFigures = ttlCache<string>(5000, { forgetsFailures: true })

/**
 * Omits the database metrics after a storage fault. The response still has the metrics of the
 * process.
 */
function withoutDatabase(cause: unknown): string {
  if (storageFaultOf(cause) === null) throw cause
  return ''
}

export const publicGuards: PublicGuards = { getMetrics: admit }

export const handlers = {
  async getMetrics(ctx) {
    const figures = await latestFigures(ctx.services, ctx.time.getTime(), () => figuresOf(ctx)).catch(withoutDatabase)
    return download({
      mediaType: 'text/plain; version=0.0.4; charset=utf-8',
      body: `${await ctx.services.metrics.text()}\n${figures}`,
      headers: { 'cache-control': 'no-store' },
    })
  },
} satisfies Partial<Handlers>
