// Why an active webhook sends nothing (DOMAIN chapter 0, row 14): the user who changed it last is
// deleted or inactive, or may read none of the record types it sends. The sentences name no user,
// so that the log can contain them.
import { operations } from '../../contract/operations.gen.ts'
import type { OperationFact } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { type Sight, sightOf } from '../../kernel/query/event-visibility.ts'
import { inactiveReason, requireTokenAbilities } from '../users/acting-user.ts'
import { eventMatcher } from './event-patterns.ts'

/** A webhook with the status and role of its user. */
export interface WebhookWithChanger {
  is_active: number
  entity_type: string | null
  events: string
  user_status: number | null
  permission_type: string | null
  permissions: string | null
}

/** The columns that a query gets by joining `users` and `roles`. */
export const changerColumns = ['users.status as user_status', 'roles.permission_type', 'roles.permissions'] as const

type Sights = ReadonlyMap<string, Sight>

export function silentReason(sights: Sights, webhook: WebhookWithChanger): string | null {
  if (webhook.is_active === 0) return null
  if (webhook.user_status !== 1) return inactiveReason('webhook')
  if (webhook.permission_type === 'all') return null
  const held = new Set(JSON.parse(webhook.permissions ?? '[]') as string[])
  const needed = permissionsOf(sights, webhook)
  if (needed === null || needed.some((key) => held.has(key))) return null
  return `The user who changed this webhook last lacks the permission ${needed.join(' and ')} to read its records.`
}

/**
 * The permissions one of which is needed to read any record that the webhook sends; null when none
 * is needed or the webhook subscribes to nothing.
 */
function permissionsOf(sights: Sights, { entity_type: only, events }: WebhookWithChanger): string[] | null {
  const types = only === null ? typesOf(sights, JSON.parse(events) as string[]) : [only]
  if (types === null || types.length === 0) return null
  const keys = types.map((type) => sights.get(type)?.lists.permission ?? null)
  return keys.includes(null) ? null : ([...new Set(keys)] as string[])
}

/** Throws 403 unless the calling token may itself read all that the webhook sends. */
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

/** The base names of all events, such as `lead.update`. */
const bases = [...new Set(Object.values(operations).flatMap(({ events }: OperationFact) => events))]

/**
 * The record types of the events, found by the deletion event of each type; null when an event has
 * no such type.
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
