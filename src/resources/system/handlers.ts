// Health of the process and readiness for requests (DOMAIN 26). The documentation and the contract itself are served by
// docs.ts.
import type { FaultKind, RecordedFault } from '../../../db/store.ts'
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

/** How long what is due may wait before somebody should look. */
const patienceMs = 60_000

/** Whether what is due gets done: told by the rows, whichever process does it. */
async function worker(ctx: Context): Promise<Told['worker']> {
  const lock = await ctx.db.selectFrom('locks').select('locked_until').where('name', '=', 'worker').executeTakeFirst()
  if ((lock?.locked_until ?? '') < now(ctx)) return 'off'
  const since = stamp(new Date(ctx.time.getTime() - patienceMs))
  return (await areReadersBehind(ctx, since)) || (await areJobsBehind(ctx, since)) ? 'behind' : 'ok'
}

/** Whether a reader of the event log has not come to an event that is older. */
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

async function mail({ db, services }: Context): Promise<Told['mail']> {
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

interface Told {
  worker: 'ok' | 'behind' | 'off'
  mail: 'ok' | 'unconfigured' | 'failing'
  webhooks: { failing: number; waiting: number }
}

async function ask(ctx: Context): Promise<Told> {
  try {
    // Of a table, so that the file is read.
    await ctx.db.selectFrom('users').select('id').orderBy('id').limit(1).execute()
  } catch (cause) {
    throw (
      toUnavailableProblem(cause) ??
      new Problem('unavailable', 'The database does not answer.', { cause, headers: { 'retry-after': '5' } })
    )
  }
  return {
    worker: await worker(ctx),
    mail: await mail(ctx),
    webhooks: webhookTotals(await webhookStates(ctx.db, ctx.services.sights)),
  }
}

/** What the database has told within the last second, or that it tells nothing: anybody may ask, as often as they like. */
const lastTold = ttlCache<Told>(1000)

const faultProblems = {
  damaged: 'The database is damaged. Run: accord doctor. Then restore the last backup: accord restore <path> --force.',
  io: 'The disk of this server failed. It is ready again a minute after the last error, once a write has succeeded.',
} as const

const presentFault = ({ services }: Context, kind: FaultKind): RecordedFault['present'] =>
  services.store.faults().find((fault) => fault.kind === kind)?.present ?? null

/** Throws while a fault of the kind lasts. */
function refuse(ctx: Context, kind: keyof typeof faultProblems): void {
  const fault = presentFault(ctx, kind)
  if (fault === null) return
  const since = `First met: ${fault.code}, ${fault.since.toISOString()}.`
  throw new Problem('unavailable', `${faultProblems[kind]} ${since}`, { headers: { 'retry-after': '60' } })
}

export const handlers = {
  ...jobs,
  ...metrics,

  getHealth: async () => ({ status: 'ok', version }),

  getReadiness: async (ctx) => {
    refuse(ctx, 'damaged')
    const told = await lastTold(ctx.services, ctx.time.getTime(), () => ask(ctx))
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
    // Requests are answered as well without a current manual, a worker or mail, so this is told but keeps nobody away.
    return {
      status: 'ready',
      checks: {
        database: 'ok',
        documentation: ctx.services.readiness(),
        ...told,
        disk,
        maintenance: presentFault(ctx, 'maintenance') === null ? 'ok' : 'failing',
      },
    }
  },
} satisfies Partial<Handlers>
