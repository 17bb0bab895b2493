// Why an active webhook sends nothing: the user who last changed the
// webhook is deleted or inactive, or has no permission to read any of the record types that the
// webhook sends. The reasons contain no user name, so they may be logged.
import { operations } from '../../contract/operations.gen.ts'
import type { OperationFact } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { type Sight, sightOf } from '../../kernel/query/event-visibility.ts'
import { inactiveReason, requireTokenAbilities } from '../users/acting-user.ts'
import { eventMatcher } from './event-patterns.ts'

/** A webhook with the status and permissions of the user who changed the webhook last. */
export interface WebhookWithChanger {
  is_active: number
  entity_type: string | null
  events: string
  user_is_active: number | null
  permission_type: string | null
  permissions: string | null
}

/** The columns of `WebhookWithChanger` for a query that joins `users` and `roles`. */
export const changerColumns = [
  'users.is_active as user_is_active',
  'roles.permission_type',
  'roles.permissions',
] as const

type Sights = ReadonlyMap<string, Sight>

export function silentReason(sights: Sights, webhook: WebhookWithChanger): string | null {
  if (webhook.is_active === 0) return null
  if (webhook.user_is_active !== 1) return inactiveReason('webhook')
  if (webhook.permission_type === 'all') return null
  const held = new Set(JSON.parse(webhook.permissions ?? '[]') as string[])
  const needed = permissionsOf(sights, webhook)
  if (needed === null || needed.some((key) => held.has(key))) return null
  return `The user who changed this webhook last lacks the permission ${needed.join(' and ')} to read its records.`
}

/**
 * Returns the permissions for reading the record types that the webhook sends. A user with one of
 * them receives at least some events. Returns null when no permission can be missing: a type needs
 * no permission, an event has no record type, or the webhook has no subscription.
 */
function permissionsOf(sights: Sights, { entity_type: only, events }: WebhookWithChanger): string[] | null {
  const types = only === null ? typesOf(sights, JSON.parse(events) as string[]) : [only]
  if (types === null || types.length === 0) return null
  const keys = types.map((type) => sights.get(type)?.lists.permission ?? null)
  return keys.includes(null) ? null : ([...new Set(keys)] as string[])
}

/** Throws 403 unless the calling token may read every record type that the webhook sends. */
export function requireWebhookAbilities(
  ctx: Context,
  { entity_type: only, events }: Pick<WebhookWithChanger, 'entity_type' | 'events'>,
): void {
  const { sights } = ctx.services
  const types = only === null ? typesOf(sights, JSON.parse(events) as string[]) : [only]
  requireTokenAbilities(
    ctx,
    [...(types ?? sights.keys())].map((type) => sightOf(ctx, type).lists),
  )
}

/** The names of all events without a suffix such as `.after`, for example `lead.update`. */
const bases = [...new Set(Object.values(operations).flatMap(({ events }: OperationFact) => events))]

/**
 * Returns the record types of the events that match `patterns`, or null when an event has no record
 * type. The type of an event such as `lead.update` is the type whose deletion event has the same
 * prefix, here `lead.delete`.
 */
function typesOf(sights: Sights, patterns: readonly string[]): string[] | null {
  const matches = patterns.map(eventMatcher)
  const named = bases.filter((base) => matches.some((isMeant) => isMeant(base) || isMeant(`${base}.after`)))
  const ofFamily = new Map(
    [...sights].flatMap(([type, { records }]) =>
      records?.deleted ? [[eventFamily(records.deleted), type] as const] : [],
    ),
  )
  const types = named.map((base) => ofFamily.get(eventFamily(base)))
  return types.includes(undefined) ? null : ([...new Set(types)] as string[])
}

const eventFamily = (base: string): string => base.slice(0, base.lastIndexOf('.'))
