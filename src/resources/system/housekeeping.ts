// Nightly jobs: delete old rows, optimize the database and check the search index.
import { sql } from 'kysely'
import { isRebuildLeft } from '../../../db/search/rebuild.ts'
import { defineJob, enqueue } from '../../jobs/queue.ts'
import type { Schedule } from '../../jobs/schedules.ts'
import { deviceDays } from '../../kernel/auth/sign-in-devices.ts'
import { type Context, now } from '../../kernel/context.ts'
import { daysAfter } from '../../kernel/runtime/clock.ts'
import { yieldToEventLoop } from '../../kernel/runtime/cooperative.ts'
import { cleanFiles } from '../files/clean-up.ts'
import { revokeTokens } from '../tokens/rows.ts'
import { discardKilledRebuild, rebuildSearchOnline } from './search-rebuild.ts'

interface Due {
  due: string
}

/**
 * The number of days for which finished workflow runs, finished deliveries and expired tokens are
 * kept.
 */
const keptDays = 30
/** The maximum number of rows per delete statement. Other work can run between two statements. */
const atOnce = 100

type Log =
  | 'workflow_runs'
  | 'webhook_deliveries'
  | 'archives'
  | 'events'
  | 'idempotency_keys'
  | 'sessions'
  | 'password_resets'
  | 'login_attempts'
  | 'sign_in_devices'
  | 'call_counts'

/**
 * Returns each table to prune, its indexed time column, and the time before which rows are deleted.
 * The time column of unfinished rows is null, so unfinished rows are kept.
 */
function logs(ctx: Context): [table: Log, column: string, until: string][] {
  const daysAgo = (days: number): string => daysAfter(ctx.time, -days)
  return [
    ['workflow_runs', 'finished_at', daysAgo(keptDays)],
    ['webhook_deliveries', 'finished_at', daysAgo(keptDays)],
    ['archives', 'expires_at', now(ctx)],
    ['events', 'created_at', daysAgo(ctx.services.config.eventsRetentionDays)],
    ['idempotency_keys', 'expires_at', now(ctx)],
    ['sessions', 'expires_at', now(ctx)],
    ['password_resets', 'expires_at', now(ctx)],
    ['login_attempts', 'created_at', daysAgo(1)],
    ['sign_in_devices', 'last_used_at', daysAgo(deviceDays)],
    ['call_counts', 'window_start', daysAgo(1)],
  ]
}

export const prune = defineJob<Due>({
  kind: 'system.prune',
  async run(ctx, _payload, { signal }) {
    for (const log of logs(ctx)) {
      for (let gone = atOnce; gone === atOnce && !signal.aborted; await yieldToEventLoop())
        gone = await pruneSome(ctx, ...log)
    }
    if (signal.aborted) return
    await pruneTokens(ctx)
    await cleanFiles(ctx)
  },
})

async function pruneSome({ db }: Context, table: Log, column: string, until: string): Promise<number> {
  const by = sql.ref(column)
  const old = db.selectFrom(table).select('id').where(by, '<', until).orderBy(by).limit(atOnce)
  const ids = (await old.execute()).map(({ id }) => id)
  if (ids.length > 0) await db.deleteFrom(table).where('id', 'in', ids).execute()
  return ids.length
}

/**
 * Deletes the tokens that expired more than `keptDays` ago. Each deletion emits the same events as
 * a revocation.
 */
async function pruneTokens(ctx: Context): Promise<void> {
  const old = ctx.db.selectFrom('tokens').select('id').where('expires_at', '<', daysAfter(ctx.time, -keptDays))
  for (const { id } of await old.execute()) {
    await revokeTokens(ctx, [id])
    await yieldToEventLoop()
  }
}

export const optimize = defineJob<Due>({
  kind: 'system.optimize',
  async run({ db, services: { store } }) {
    await store.dialect.updateStatistics(db)
    await store.maintain()
  },
})

export const checkSearch = defineJob<Due>({
  kind: 'system.check-search',
  async run(ctx) {
    const { log, searchIndex, store } = ctx.services
    const found = await searchIndex.findProblem(ctx.db, store.dialect)
    if (found === null) {
      await discardKilledRebuild(ctx)
      return
    }
    log.error({ finding: found }, 'The search index disagrees with the records. Rebuilding it.')
    if ((await rebuildSearchOnline(ctx)) === null) log.info({}, 'Another process rebuilds the search index already.')
  },
})

/**
 * Enqueues a check of the search index at server start when a killed rebuild has left its tables
 * and triggers behind. The nightly check would be too late, because these triggers slow down every
 * write.
 */
export async function checkSearchAfterKill(ctx: Context): Promise<void> {
  if (await isRebuildLeft(ctx.services.store))
    await enqueue(ctx, checkSearch, { due: now(ctx) }, { key: checkSearch.kind })
}

export const jobs = [prune, optimize, checkSearch]

export const schedules: readonly Schedule[] = [
  { name: 'prune', at: '03:00', job: prune },
  { name: 'optimize', at: '04:00', job: optimize },
  { name: 'check-search', at: '04:30', job: checkSearch },
]
