// What the doctor asks of the rows: whether the engine trusts its own file, and whether what happens by itself does happen.
import type { Kysely } from 'kysely'
import { migrations as known, pendingMigrations } from '../../../db/migrate.ts'
import type { Store } from '../../../db/store.ts'
import type { Config } from '../../config/config.ts'
import { findLoss, restoreAdvice } from '../../installation/installation.ts'
import { stamp, systemClock } from '../../kernel/runtime/clock.ts'
import { isProcessGone } from '../../kernel/runtime/process-identity.ts'
import { searchIndex, sights } from '../../operations.ts'
import { fullAccessUsers } from '../../resources/roles/permission-ceiling.ts'
import { describeWebhook, webhookStates } from '../../resources/system/webhook-health.ts'
import { type CheckResult, Hint } from './check-result.ts'

export async function checkDatabase(store: Store | string | null, config: Config): Promise<CheckResult> {
  if (store === null) return missingProblem(config) ?? 'it does not exist. Run: accord install'
  if (typeof store === 'string')
    return `it cannot be opened (${store}). Check the path and its rights. If they are right, stop the server. ${restoreAdvice(config)}`
  const lost = missingProblem(config)
  if (lost !== null) return lost
  // The engine gives up where a page makes no sense at all.
  const findings = await store.dialect
    .integrityProblems(store.db as unknown as Kysely<unknown>)
    .catch((cause: unknown) => [`${cause instanceof Error ? cause.message : String(cause)}.`])
  if (findings.length === 0) return null
  const more = findings.length > 3 ? ` and ${findings.length - 3} more` : ''
  return `${findings.slice(0, 3).join(' ')}${more} Stop the server. ${restoreAdvice(config)}`
}

/** An empty database beside what belongs to one, or the database of another installation: to install would hide the loss. */
function missingProblem(config: Config): string | null {
  const { problem } = findLoss(config)
  return problem === null ? null : `it ${problem}. Stop the server. ${restoreAdvice(config)}`
}

export async function checkMigrations(store: Store, config: Config): Promise<CheckResult> {
  const due = await pendingMigrations(store)
  if (due.length === known.length) return missingProblem(config) ?? 'nothing is in it. Run: accord install'
  return due.length === 0 ? null : `${due.length} are to be applied (${due.join(', ')}). Run: accord migrate`
}

export async function checkAdministrator(store: Store, { env }: Config): Promise<CheckResult> {
  const found = await fullAccessUsers(store.db).where('users.password_hash', 'is not', null).limit(1).executeTakeFirst()
  if (found) return env === 'production' ? exampleAddress(store) : null
  return 'no active user holds every permission. Run: accord install, or accord user create --role Administrator'
}

/** What is sent to it, such as a new password, reaches nobody. */
async function exampleAddress({ db }: Store): Promise<CheckResult> {
  const found = await fullAccessUsers(db).where('users.email_key', '=', 'admin@example.com').executeTakeFirst()
  return found
    ? new Hint('admin@example.com still holds every permission. Give it an address that somebody reads.')
    : null
}

export async function checkSearchIndex({ db, dialect }: Store): Promise<CheckResult> {
  const found = await searchIndex.findProblem(db, dialect)
  return found === null ? null : `the index is not that of the records: ${found} Run: accord search rebuild`
}

export async function checkFailedJobs({ db }: Store): Promise<CheckResult> {
  const { count } = await db
    .selectFrom('jobs')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('state', '=', 'buried')
    .executeTakeFirstOrThrow()
  return Number(count) === 0
    ? null
    : `${count} ${count === 1 ? 'was' : 'were'} given up. Look with: accord jobs list --state buried, and try again with: accord jobs retry`
}

const maxNamed = 3

/** A hint: what fails is another server, and people here may not be able to mend it. */
export async function checkWebhooks({ db }: Store): Promise<CheckResult> {
  const failing = (await webhookStates(db, sights)).filter(({ failure }) => failure !== null)
  if (failing.length === 0) return null
  const more = failing.length > maxNamed ? [`and ${failing.length - maxNamed} more`] : []
  const named = [...failing.slice(0, maxNamed).map(describeWebhook), ...more].join(', ')
  return new Hint(`${named}. The list of deliveries says why: GET /settings/webhooks/{id}/deliveries`)
}

const ago = (minutes: number): string => stamp(new Date(systemClock.now().getTime() - minutes * 60_000))

/** Whether a server or worker says that it does what is due. */
async function isWorking({ db }: Store): Promise<boolean> {
  const lock = await db.selectFrom('locks').selectAll().where('name', '=', 'worker').executeTakeFirst()
  // The note of a process that has ended stays valid for some seconds.
  return lock !== undefined && lock.locked_until > ago(0) && !isProcessGone(lock.locked_by)
}

/** Where nobody works, what waits is no defect. */
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
    `${names} did not come to events of more than 10 minutes ago. Its log says why; restart the server or worker.`,
    `${names} wait for a server or worker to start.`,
  )
}

/** Work whose process is gone, which the next worker takes up. */
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
    `${count} jobs run for longer than their worker has held them. Restart the server or worker; look with: accord jobs list --state running`,
    `${count} jobs were cut off and go on when a server or worker starts.`,
  )
}

/** Tokens, leases and schedules go by the clock: one that was set back makes what is stored lie ahead of it. */
export async function checkClock({ db }: Store): Promise<CheckResult> {
  const newest = await db.selectFrom('events').select('created_at').orderBy('id', 'desc').limit(1).executeTakeFirst()
  return newest !== undefined && newest.created_at > ago(-5)
    ? `the newest event is of ${newest.created_at}, and this machine says it is ${ago(0)}. Set its clock, by NTP for instance; events keep the time they have.`
    : null
}
