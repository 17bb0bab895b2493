// Handlers for liveness, readiness, jobs and metrics. http/docs/ serves the
// documentation and the contract.
import { storageFaultOf } from '../../../db/storage-errors.ts'
import type { FaultKind, RecordedFault, ReplicaState } from '../../../db/store.ts'
import { version } from '../../installation/package-info.ts'
import { type Context, now } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import type { Handlers } from '../../kernel/handler.ts'
import { stamp } from '../../kernel/runtime/clock.ts'
import { ttlCache } from '../../kernel/runtime/ttl-cache.ts'
import { toUnavailableProblem } from '../../kernel/runtime/unavailable.ts'
import { handlers as jobs } from './jobs.ts'
import { mailJobKinds } from './mail-job-kinds.ts'
import { handlers as metrics } from './metrics.ts'
import { webhookStates, webhookTotals } from './webhook-health.ts'

/** The maximum time in milliseconds that due work may wait before readiness reports `behind`. */
const maxWaitMs = 60_000

/**
 * Returns the state of the background worker, read from the database: the worker may run in any
 * process.
 */
async function worker(ctx: Context): Promise<DatabaseState['worker']> {
  const lock = await ctx.db.selectFrom('locks').select('locked_until').where('name', '=', 'worker').executeTakeFirst()
  if ((lock?.locked_until ?? '') < now(ctx)) return 'off'
  const since = stamp(new Date(ctx.time.getTime() - maxWaitMs))
  return (await areReadersBehind(ctx, since)) || (await areJobsBehind(ctx, since)) ? 'behind' : 'ok'
}

/** Returns whether an event consumer has not yet processed an event that is older than `since`. */
async function areReadersBehind({ db }: Context, since: string): Promise<boolean> {
  const place = db.selectFrom('event_readers').select(({ fn }) => fn.min('last_event_id').as('place'))
  const next = db.selectFrom('events').select('created_at').where('id', '>', place).orderBy('id').limit(1)
  const event = await next.executeTakeFirst()
  return event !== undefined && event.created_at < since
}

async function areJobsBehind({ db, services }: Context, since: string): Promise<boolean> {
  const late = await db
    .selectFrom('jobs')
    .select('id')
    .where('state', '=', 'waiting')
    .where('run_at', '<', since)
    .$if(!services.mailer.isConfigured, (query) => query.where('kind', 'not in', mailJobKinds(services)))
    .limit(1)
    .executeTakeFirst()
  if (!late) return false
  const busy = await db.selectFrom('jobs').select('id').where('state', '=', 'running').limit(1).executeTakeFirst()
  return !busy
}

async function mail({ db, services }: Context): Promise<DatabaseState['mail']> {
  if (!services.mailer.isConfigured) return 'unconfigured'
  const failed = await db
    .selectFrom('jobs')
    .select('id')
    .where('state', 'in', ['waiting', 'running'])
    .where('kind', 'in', mailJobKinds(services))
    .where('last_error', 'is not', null)
    .limit(1)
    .executeTakeFirst()
  return failed ? 'failing' : 'ok'
}

interface DatabaseState {
  replica: ReplicaState
  worker: 'ok' | 'behind' | 'off'
  mail: 'ok' | 'unconfigured' | 'failing'
  webhooks: { failing: number; waiting: number }
}

async function checkDatabase(ctx: Context): Promise<DatabaseState> {
  const { store, sights } = ctx.services
  try {
    await store.assertPrimary()
    // Queries a table, because SQLite evaluates `select 1` without reading the database file.
    await ctx.db.selectFrom('users').select('id').orderBy('id').limit(1).execute()
  } catch (cause) {
    const { message, more } =
      toUnavailableProblem(cause) ??
      new Problem('unavailable', 'The database does not answer.', { cause, headers: { 'retry-after': '5' } })
    const fault = storageFaultOf(cause)
    const role = fault === 'standby' || fault === 'unreachable' ? fault : undefined
    throw new Problem('unavailable', message, { ...more, ...(role && { database_role: role }) })
  }
  return {
    replica: await store.replicaState(),
    worker: await worker(ctx),
    mail: await mail(ctx),
    webhooks: webhookTotals(await webhookStates(ctx.db, sights)),
  }
}

/**
 * Caches the last state of the database, or the last error, for one second, because `/readyz` needs
 * no authentication and has no rate limit.
 */
const lastDatabaseState = ttlCache<DatabaseState>(1000)

/**
 * Caches the state of the file storage for five seconds, because requests to a storage bucket cost
 * money.
 */
const lastFileState = ttlCache<'ok' | 'failing'>(5_000)

async function checkFiles({ services }: Context): Promise<'ok' | 'failing'> {
  const problem = await services.files.findProblem()
  if (problem !== null) services.log.error({ problem }, 'The file storage fails.')
  return problem === null ? 'ok' : 'failing'
}

const faultProblems = {
  damaged: 'The database is damaged. Run: accord doctor. Then restore the last backup: accord restore <path> --force.',
  io: 'The disk of this server failed. It is ready again a minute after the last error, once a write has succeeded.',
} as const

const presentFault = ({ services }: Context, kind: FaultKind): RecordedFault['present'] =>
  services.store.faults().find((fault) => fault.kind === kind)?.present ?? null

/** Throws 503 while a fault of this `kind` lasts. */
function refuse(ctx: Context, kind: keyof typeof faultProblems): void {
  const fault = presentFault(ctx, kind)
  if (fault === null) return
  const since = `First seen: ${fault.code}, ${fault.since.toISOString()}.`
  throw new Problem('unavailable', `${faultProblems[kind]} ${since}`, { headers: { 'retry-after': '60' } })
}

export const handlers = {
  ...jobs,
  ...metrics,

  getHealth: async () => ({ status: 'ok', version }),

  getReadiness: async (ctx) => {
    refuse(ctx, 'damaged')
    const state = await lastDatabaseState(ctx.services, ctx.time.getTime(), () => checkDatabase(ctx))
    const lost = ctx.services.store.lostFiles()
    if (lost !== null)
      throw new Problem('unavailable', `Nothing is written: ${lost}. Put it back, or restart the server.`, {
        headers: { 'retry-after': '30' },
      })
    const disk = await ctx.services.disk.state()
    refuse(ctx, 'io')
    if (disk === 'full')
      throw new Problem('unavailable', 'Nothing can be written: the disk is full, or it is read-only.', {
        headers: { 'retry-after': '10' },
      })
    const files = await lastFileState(ctx.services, ctx.time.getTime(), () => checkFiles(ctx))
    // A problem of the documentation, the worker, mail, webhooks or the bucket of files is reported
    // here. Such a problem does not make the server unready, because requests still succeed. A
    // failing bucket fails for all servers, so a load balancer gains nothing by avoiding this
    // server.
    return {
      status: 'ready',
      checks: {
        database: 'ok',
        database_role: 'primary',
        documentation: ctx.services.readiness(),
        ...state,
        disk,
        files,
        maintenance: presentFault(ctx, 'maintenance') === null ? 'ok' : 'failing',
      },
    }
  },
} satisfies Partial<Handlers>
