// Writes the event log: each write appends one row in its transaction. History,
// restore, event feed, webhooks and workflows read the log.
import type { Context } from '../context.ts'
import { sightOf } from '../query/event-visibility.ts'
import { insert } from '../query/insert.ts'
import type { AccordEvent, Snapshot } from './events.ts'

/** Keys whose values are never stored in the event log. */
const secrets = new Set([
  'password',
  'password_confirmation',
  'current_password',
  'password_hash',
  'secret',
  'secret_hash',
  'token',
])
/**
 * The secret keys in JSON syntax. They cannot occur inside a JSON string, where quotes are escaped.
 */
const secretKeys = [...secrets].map((key) => `"${key}":`)
/**
 * Keys that never count as changed. Every write sets `updated_at` and `version`, and tag links have
 * their own events.
 */
const neverChanged: ReadonlySet<string> = new Set(['updated_at', 'version', 'tags'])

/** Returns a snapshot as JSON. Omits secrets, and texts longer than `maxLength` characters. */
function stored(snapshot: Snapshot | null, maxLength: number): string | null {
  if (snapshot === null) return null
  // Searches the JSON text for secret keys. Checking each key takes ten times as long, and few
  // snapshots contain a secret.
  const whole = maxLength < Number.POSITIVE_INFINITY ? null : JSON.stringify(snapshot)
  if (whole !== null && !secretKeys.some((key) => whole.includes(key))) return whole
  const isTooLong = (value: unknown): boolean => typeof value === 'string' && value.length > maxLength
  // Users choose the codes of custom attributes, so a custom attribute with the code `token` is not
  // a secret.
  const own = new Set<unknown>()
  return JSON.stringify(snapshot, function (this: unknown, key, value: unknown) {
    if (key === 'custom_attributes') own.add(value)
    return (secrets.has(key) && !own.has(this)) || isTooLong(value) ? undefined : value
  })
}

/** Returns a body without secret keys, for `before` listeners. */
export function withoutSecretKeys(input: unknown): unknown {
  if (typeof input !== 'object' || input === null || !Object.keys(input).some((key) => secrets.has(key))) return input
  return Object.fromEntries(Object.entries(input).filter(([key]) => !secrets.has(key)))
}

/**
 * Returns the keys of an entity whose values are derived from other fields, other records or the
 * clock (x-derived).
 */
export const derivedKeysOf = ({ services }: Pick<Context, 'services'>, entity: string): readonly string[] =>
  services.resources.get(entity)?.getOperation.derivedKeys ?? []

/** Whether two values of snapshots have the same JSON. Most are the same texts or numbers. */
const isSame = (one: unknown, other: unknown): boolean => one === other || JSON.stringify(one) === JSON.stringify(other)

/**
 * Returns the keys whose values differ between two snapshots: top-level keys and
 * `custom_attributes.<code>`. Returns all keys of a new record.
 */
export function changedKeys(before: Snapshot | undefined, after: Snapshot, derivedKeys: readonly string[]): string[] {
  const ignored = (key: string): boolean => neverChanged.has(key) || derivedKeys.includes(key)
  if (!before) return Object.keys(after).filter((key) => !ignored(key))
  const keys: string[] = []
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    if (ignored(key) || key.endsWith('_count') || isSame(before[key], after[key])) continue
    if (key !== 'custom_attributes') {
      keys.push(key)
      continue
    }
    const [was, is] = [before[key], after[key]] as Snapshot[]
    for (const code of new Set([...Object.keys(was ?? {}), ...Object.keys(is ?? {})])) {
      if (!isSame(was?.[code], is?.[code])) keys.push(`custom_attributes.${code}`)
    }
  }
  return keys
}

/** Returns the id of the newest event; 0 when the log is empty. */
export async function newestEvent({ db }: Pick<Context, 'db'>): Promise<number> {
  const row = await db.selectFrom('events').select('id').orderBy('id', 'desc').limit(1).executeTakeFirst()
  return row?.id ?? 0
}

/** Writes one event to the log and returns its id. */
export async function record(
  ctx: Context,
  event: AccordEvent,
  before: Snapshot | null,
  after: Snapshot | null,
  leadOwners: readonly (number | null)[] | null = null,
): Promise<number> {
  const owner = (after ?? before)?.user_id
  const { maxLoggedTextLength = Number.POSITIVE_INFINITY } = sightOf(ctx, event.entityType)
  // Event ids must become visible in ascending order, because readers of the log continue after the
  // last id that they have read.
  if (ctx.unit?.firstEventId === undefined) await ctx.services.store.dialect.enterCommitOrder(ctx.db)
  const id = await insert(ctx, 'events', {
    name: event.name,
    entity_type: event.entityType,
    entity_id: event.entityId,
    related_type: event.related?.type ?? null,
    related_id: event.related?.id ?? null,
    actor_type: event.actor.type,
    actor_id: event.actor.id,
    actor_name: event.actor.name,
    token_id: event.tokenId,
    request_id: event.requestId,
    origin: event.origin,
    ip: ctx.ip,
    before: stored(before, maxLoggedTextLength),
    after: stored(after, maxLoggedTextLength),
    changed: JSON.stringify(event.changed ?? []),
    restored: event.restored ? 1 : 0,
    owner_id: typeof owner === 'number' ? owner : null,
    lead_owners: leadOwners && JSON.stringify(leadOwners),
    workflow_run_id: ctx.workflowRun ?? null,
    first_event_id: ctx.unit?.firstEventId ?? null,
    created_at: event.timestamp,
  })
  if (ctx.unit) ctx.unit.firstEventId ??= id
  return id
}
