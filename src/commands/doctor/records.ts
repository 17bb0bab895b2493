// The checks of `accord doctor` that concern the database: integrity, migrations, an administrator,
// the search index, and the progress of background work.
import type { Kysely } from 'kysely'
import { migrations as known, pendingMigrations } from '../../../db/migrate.ts'
import { engineOf, type Store } from '../../../db/store.ts'
import type { Config } from '../../config/config.ts'
import { findLoss, restoreAdvice } from '../../installation/installation.ts'
import { daysMs, stamp, systemClock } from '../../kernel/runtime/clock.ts'
import { isProcessGone } from '../../kernel/runtime/process-identity.ts'
import { today } from '../../kernel/values/format.ts'
import { searchIndex, sights } from '../../operations.ts'
import { fullAccessUsers } from '../../resources/roles/permission-ceiling.ts'
import { describeWebhook, webhookStates } from '../../resources/system/webhook-health.ts'
import { installationAdvice } from '../installed-store.ts'
import { type CheckResult, Hint } from './check-result.ts'

export async function checkDatabase(store: Store | string | null, config: Config): Promise<CheckResult> {
  const lost = await missingProblem(config)
  if (store === null)
    return (
      lost ??
      (engineOf(config.databaseUrl) === 'postgres'
        ? 'it is empty. Run: accord install'
        : `it does not exist. ${installationAdvice}`)
    )
  if (typeof store === 'string')
    return `it cannot be opened (${store}). Check the path and its permissions. If they are right, stop the server. ${restoreAdvice(config)}`
  if (lost !== null) return lost
  // The integrity check throws when a page of the database cannot be read.
  const findings = await store.dialect
    .integrityProblems(store.db as unknown as Kysely<unknown>)
    .catch((cause: unknown) => [`${cause instanceof Error ? cause.message : String(cause)}.`])
  if (findings.length === 0) return null
  const more = findings.length > 3 ? ` and ${findings.length - 3} more` : ''
  const advice = engineOf(config.databaseUrl) === 'postgres' ? '' : ` Stop the server. ${restoreAdvice(config)}`
  return `${findings.slice(0, 3).join(' ')}${more}${advice}`
}

/**
 * Returns the problem of a lost or exchanged database, for which `accord install` would be wrong
 * advice. Returns null for any other database.
 */
async function missingProblem(config: Config): Promise<string | null> {
  const { problem, found } = await findLoss(config)
  if (found.problem !== null) return `${found.problem}.`
  return problem === null ? null : `it ${problem}. Stop the server. ${restoreAdvice(config)}`
}

export async function checkReplica(store: Store): Promise<CheckResult> {
  const state = await store.replicaState()
  if (state === 'ok')
    return (await store.replicaSendsFeedback()) === false
      ? new Hint(
          'hot_standby_feedback is off, so the replica may cancel long reads or fall behind, and the primary then answers them. Set it to on in the postgresql.conf of the replica.',
        )
      : null
  return state === 'behind'
    ? 'it lacks recent changes, so the primary answers exports and reports. Look at pg_stat_replication on the primary; a promoted replica counts as well.'
    : 'it does not answer, so the primary answers exports and reports. Check the address, the user and pg_hba.conf.'
}

export async function checkMigrations(store: Store, config: Config): Promise<CheckResult> {
  const due = await pendingMigrations(store)
  if (due.length === known.length) return (await missingProblem(config)) ?? 'the database is empty. Run: accord install'
  return due.length === 0 ? null : `${due.length} pending (${due.join(', ')}). Run: accord migrate`
}

export async function checkAdministrator(store: Store, { env }: Config): Promise<CheckResult> {
  const found = await fullAccessUsers(store.db).where('users.password_hash', 'is not', null).limit(1).executeTakeFirst()
  if (found) return env === 'production' ? exampleAddress(store) : null
  return 'no active user holds every permission. Run: accord install, or accord user create --role Administrator'
}

/**
 * Returns a hint when an administrator has the example address, which receives no e-mail such as a
 * link to reset the password.
 */
async function exampleAddress({ db }: Store): Promise<CheckResult> {
  const found = await fullAccessUsers(db).where('users.email_key', '=', 'admin@example.com').executeTakeFirst()
  return found ? new Hint('admin@example.com still holds every permission. Give it a real address.') : null
}

export async function checkSearchIndex({ db, dialect }: Store): Promise<CheckResult> {
  const found = await searchIndex.findProblem(db, dialect)
  return found === null ? null : `the index does not match the records: ${found} Run: accord search rebuild`
}

export async function checkFailedJobs({ db }: Store): Promise<CheckResult> {
  const { count } = await db
    .selectFrom('jobs')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('state', '=', 'buried')
    .executeTakeFirstOrThrow()
  return Number(count) === 0
    ? null
    : `${count} failed for good. See: accord jobs list --state buried. To run them again: accord jobs retry`
}

/** Names the active campaigns whose day is over and that never ran. */
export async function checkCampaigns({ db }: Store, { timezone }: Config): Promise<CheckResult> {
  const yesterday = today(new Date(systemClock.now().getTime() - daysMs(1)), timezone)
  const rows = await db
    .selectFrom('marketing_campaigns')
    .innerJoin('marketing_events', 'marketing_events.id', 'marketing_campaigns.marketing_event_id')
    .select(['marketing_campaigns.id', 'marketing_campaigns.name', 'marketing_events.date'])
    .where('marketing_campaigns.is_active', '=', 1)
    .where('marketing_campaigns.last_run_at', 'is', null)
    .where('marketing_events.date', '<', yesterday)
    .orderBy('marketing_campaigns.id')
    .limit(maxNamed)
    .execute()
  return rows.map(
    ({ id, name, date }) =>
      new Hint(
        `campaign ${id} (${name}) did not run on ${date}, its day. To send it now: POST /api/admin/marketing/campaigns/${id}/run. Else switch it off.`,
      ),
  )
}

/** Names the tokens that use deprecated parts of the contract, which an upgrade may remove. */
export async function checkDeprecatedUses({ db }: Store): Promise<CheckResult> {
  const rows = await db
    .selectFrom('deprecated_uses')
    .innerJoin('tokens', 'tokens.id', 'deprecated_uses.token_id')
    .select(['tokens.id', 'tokens.name', 'deprecated_uses.name as part', 'sunset', 'deprecated_uses.last_used_at'])
    .orderBy('sunset')
    .orderBy('tokens.id')
    .limit(maxNamed)
    .execute()
  return rows.map(
    ({ id, name, part, sunset, last_used_at: at }) =>
      new Hint(
        `token ${id} (${name}) used ${part} on ${at.slice(0, 10)}, which is promised until ${sunset}. See: GET /api/admin/tokens/${id}`,
      ),
  )
}

const maxNamed = 3

/**
 * Checks the deliveries of webhooks. Returns only hints, because the receiver fails, not this
 * installation.
 */
export async function checkWebhooks({ db }: Store): Promise<CheckResult> {
  const failing = (await webhookStates(db, sights)).filter(({ failure }) => failure !== null)
  if (failing.length === 0) return null
  const more = failing.length > maxNamed ? [`and ${failing.length - maxNamed} more`] : []
  const named = [...failing.slice(0, maxNamed).map(describeWebhook), ...more].join(', ')
  return new Hint(`${named}. The list of deliveries says why: GET /settings/webhooks/{id}/deliveries`)
}

const ago = (minutes: number): string => stamp(new Date(systemClock.now().getTime() - minutes * 60_000))

/** Returns whether a server or worker has the lock for background work. */
async function isWorking({ db }: Store): Promise<boolean> {
  const lock = await db.selectFrom('locks').selectAll().where('name', '=', 'worker').executeTakeFirst()
  // The lock of an ended process stays valid for some seconds, so the process is checked, too.
  return lock !== undefined && lock.locked_until > ago(0) && !isProcessGone(lock.locked_by)
}

/**
 * Returns `sentence` as a problem. Returns `alone` as a hint when no server or worker runs, because
 * waiting work is normal then.
 */
const hintUnlessWorking = async (store: Store, sentence: string, alone: string): Promise<CheckResult> =>
  (await isWorking(store)) ? sentence : new Hint(alone)

export async function checkEventConsumers(store: Store): Promise<CheckResult> {
  const { db } = store
  const behind = await db
    .selectFrom('event_readers')
    .select(['name', 'last_event_id'])
    .where(({ exists, selectFrom }) =>
      exists(
        selectFrom('events')
          .select('events.id')
          .whereRef('events.id', '>', 'event_readers.last_event_id')
          .where('events.created_at', '<', ago(10)),
      ),
    )
    .orderBy('name')
    .execute()
  if (behind.length === 0) return null
  const names = behind.map(({ name, last_event_id }) => `${name} (at event ${last_event_id})`).join(', ')
  return hintUnlessWorking(
    store,
    `${names} did not read events from more than 10 minutes ago. The log says why; restart the server or worker.`,
    `${names} will continue when a server or worker starts.`,
  )
}

/** Finds running jobs whose lease has ended. A running worker would have taken over such a job. */
export async function checkInterruptedJobs(store: Store): Promise<CheckResult> {
  const { count } = await store.db
    .selectFrom('jobs')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('state', '=', 'running')
    .where('locked_until', '<', ago(10))
    .executeTakeFirstOrThrow()
  if (Number(count) === 0) return null
  return hintUnlessWorking(
    store,
    `${count} jobs have run past their lease. Restart the server or worker. See: accord jobs list --state running`,
    `${count} jobs were interrupted and will continue when a server or worker starts.`,
  )
}

/**
 * Checks that the newest event is not in the future. If it is, the clock was set back, and tokens,
 * leases and schedules depend on the clock.
 */
export async function checkClock({ db }: Store): Promise<CheckResult> {
  const newest = await db.selectFrom('events').select('created_at').orderBy('id', 'desc').limit(1).executeTakeFirst()
  return newest !== undefined && newest.created_at > ago(-5)
    ? `the newest event is from ${newest.created_at}, but the clock of this machine says ${ago(0)}. Set the clock, for example by NTP; events keep their times.`
    : null
}
