// What the installation does for itself each night (DOMAIN 25.1): forgets what is too old, tends the database, looks at the index of
// the search.
import { finding, rebuildAll } from '../../../db/search.ts'
import { defineJob } from '../../jobs/queue.ts'
import type { Schedule } from '../../jobs/schedules.ts'
import { restoreDays } from '../../kernel/archive.ts'
import { daysAfter } from '../../kernel/clock.ts'
import { type Context, now } from '../../kernel/context.ts'
import { transaction } from '../../kernel/write.ts'
import { cleanFiles } from '../files/clean.ts'
import { revoke, tokenRows } from '../tokens/rows.ts'

interface Due {
  due: string
}

/** Days that runs of workflows and deliveries are kept, and tokens after they have expired. */
const keptDays = 30
/** Rows at once, so that nobody waits long for the database. */
const atOnce = 500

type Log = 'workflow_runs' | 'webhook_deliveries' | 'archives' | 'events'

/** What is only added to, and since when it is kept. */
const logs = (ctx: Context): [table: Log, since: string][] => [
  ['workflow_runs', daysAfter(ctx.time, -keptDays)],
  ['webhook_deliveries', daysAfter(ctx.time, -keptDays)],
  ['archives', daysAfter(ctx.time, -restoreDays)],
  ['events', daysAfter(ctx.time, -ctx.services.config.eventsRetentionDays)],
]

export const prune = defineJob<Due>({
  kind: 'system.prune',
  async run(ctx, _payload, { signal }) {
    for (const [table, since] of logs(ctx)) {
      for (let gone = atOnce; gone === atOnce && !signal.aborted; ) gone = await pruneSome(ctx, table, since)
    }
    await ctx.db.deleteFrom('idempotency_keys').where('expires_at', '<', now(ctx)).execute()
    await ctx.db.deleteFrom('login_attempts').where('created_at', '<', daysAfter(ctx.time, -1)).execute()
    await ctx.db.deleteFrom('call_counts').where('window_start', '<', daysAfter(ctx.time, -1)).execute()
    await pruneTokens(ctx)
    await cleanFiles(ctx)
  },
})

async function pruneSome({ db }: Context, table: Log, since: string): Promise<number> {
  const old = db.selectFrom(table).select('id').where('created_at', '<', since).orderBy('id').limit(atOnce)
  const ids = (await old.execute()).map(({ id }) => id)
  if (ids.length > 0) await db.deleteFrom(table).where('id', 'in', ids).execute()
  return ids.length
}

/** Tokens that expired long ago; like every other end of a token it is told. */
async function pruneTokens(ctx: Context): Promise<void> {
  const rows = await tokenRows(ctx).where('expires_at', '<', daysAfter(ctx.time, -keptDays)).execute()
  for (const row of rows) await transaction(ctx, (ctx) => revoke(ctx, row))
}

export const optimise = defineJob<Due>({
  kind: 'system.optimise',
  run: ({ db, services }) => services.store.dialect.optimise(db),
})

export const checkSearch = defineJob<Due>({
  kind: 'system.check-search',
  async run({ db, services }) {
    const found = await finding(db, services.store.dialect)
    if (found === null) return
    services.log.error({ finding: found }, 'The index of the search was wrong and is made anew.')
    await rebuildAll(services.store)
  },
})

export const jobs = [prune, optimise, checkSearch]

export const schedules: readonly Schedule[] = [
  { name: 'prune', at: '03:00', job: prune },
  { name: 'optimise', at: '04:00', job: optimise },
  { name: 'check-search', at: '04:30', job: checkSearch },
]
