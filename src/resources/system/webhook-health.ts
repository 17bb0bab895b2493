// Failing webhooks and pending deliveries, for /readyz, /metrics, `accord doctor` and `accord jobs
// list`.
import type { Db } from '../../../db/store.ts'
import type { Sight } from '../../kernel/query/event-visibility.ts'
import { oneLine } from '../../kernel/values/format.ts'
import { changerColumns, silentReason, type WebhookWithChanger } from './webhook-rights.ts'

/**
 * The maximum number of deliveries counted per webhook, so that monitoring is cheap during a
 * backlog.
 */
const maxCounted = 10_000

export interface WebhookState {
  id: number
  name: string
  /** The reason why the webhook delivers nothing; null for a working webhook. */
  failure: string | null
  waiting: number
}

/**
 * Returns the webhooks that fail, send nothing, were switched off by the server, or have pending
 * deliveries. An installation has at most 50 webhooks, so the list needs no limit.
 */
export async function webhookStates(db: Db, sights: ReadonlyMap<string, Sight>): Promise<WebhookState[]> {
  const rows = await db
    .selectFrom('webhooks')
    .leftJoin('users', 'users.id', 'webhooks.changed_by_id')
    .leftJoin('roles', 'roles.id', 'users.role_id')
    .select(['webhooks.id', 'webhooks.name', 'webhooks.is_active', 'disabled_reason', 'failing_since', 'last_status'])
    .select(['entity_type', 'events', ...changerColumns])
    .orderBy('webhooks.id')
    .execute()
  const states: WebhookState[] = []
  for (const row of rows) {
    const some = db
      .selectFrom('webhook_deliveries')
      .select('id')
      .where('webhook_id', '=', row.id)
      .where('state', '=', 'pending')
      .limit(maxCounted)
    const { waiting } = await db
      .selectFrom(some.as('some'))
      .select(({ fn }) => fn.countAll<number>().as('waiting'))
      .executeTakeFirstOrThrow()
    const state = {
      id: row.id,
      name: oneLine(row.name),
      failure: failureOf(row, silentReason(sights, row)),
      waiting: Number(waiting),
    }
    if (state.failure !== null || state.waiting > 0) states.push(state)
  }
  return states
}

interface Row extends WebhookWithChanger {
  disabled_reason: string | null
  failing_since: string | null
  last_status: number | null
}

function failureOf(
  { is_active, disabled_reason: reason, failing_since: since, last_status: status }: Row,
  silence: string | null,
) {
  if (is_active === 0)
    return reason === null ? null : `switched off by the server: ${oneLine(reason).replace(/\.$/, '')}`
  if (silence !== null) return `sends nothing: ${silence.replace(/\.$/, '')}`
  if (since === null) return null
  return `fails since ${since}; ${status === null ? 'the receiver did not answer' : `the receiver answered ${status}`}`
}

/**
 * Returns a line such as `webhook 3 "Billing" fails since …; the receiver answered 500; 12
 * deliveries wait`.
 */
export const describeWebhook = ({ id, name, failure, waiting }: WebhookState): string =>
  [`webhook ${id} "${name}"${failure === null ? '' : ` ${failure}`}`, waitingOf(waiting)].join('; ')

const waitingOf = (count: number): string => {
  if (count >= maxCounted) return `${maxCounted} deliveries or more wait`
  return count === 1 ? '1 delivery waits' : `${count === 0 ? 'no' : count} deliveries wait`
}

export const webhookTotals = (states: readonly WebhookState[]): { failing: number; waiting: number } => ({
  failing: states.filter(({ failure }) => failure !== null).length,
  waiting: states.reduce((sum, { waiting }) => sum + waiting, 0),
})
