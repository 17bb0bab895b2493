// Why an active webhook is sent nothing (DOMAIN chapter 0, row 14): the user who changed it last is gone or not active, or may read no
// type of record that it tells of. Without a name, so that the log can say it as well.
import { operations } from '../../contract/operations.gen.ts'
import type { OperationFact } from '../../contract/types.ts'
import { assertCanCall, type Context } from '../../kernel/context.ts'
import { type Sight, sightOf } from '../../kernel/query/event-visibility.ts'
import { matcher } from '../../kernel/write/events.ts'

/** A webhook beside its user, and the role of that user. */
export interface WebhookWithChanger {
  is_active: number
  entity_type: string | null
  events: string
  user_status: number | null
  permission_type: string | null
  permissions: string | null
}

/** The columns of `Sent` that are not of the webhook, for queries that join `users` and `roles`. */
export const changerColumns = ['users.status as user_status', 'roles.permission_type', 'roles.permissions'] as const

type Sights = ReadonlyMap<string, Sight>

export function silentReason(sights: Sights, webhook: WebhookWithChanger): string | null {
  if (webhook.is_active === 0) return null
  if (webhook.user_status !== 1)
    return 'The user who changed this webhook last is gone or not active; save a change of it to have it sent what you may see.'
  if (webhook.permission_type === 'all') return null
  const held = new Set(JSON.parse(webhook.permissions ?? '[]') as string[])
  const needed = permissionsOf(sights, webhook)
  if (needed === null || needed.some((key) => held.has(key))) return null
  return `The user who changed this webhook last lacks the permission ${needed.join(' and ')}, without which nothing of it may be read.`
}

/** Permissions one of which is needed to read anything that a webhook tells of; null when nobody needs one, or it tells nothing. */
function permissionsOf(sights: Sights, { entity_type: only, events }: WebhookWithChanger): string[] | null {
  const types = only === null ? typesOf(sights, JSON.parse(events) as string[]) : [only]
  if (types === null || types.length === 0) return null
  const keys = types.map((type) => sights.get(type)?.lists.permission ?? null)
  return keys.includes(null) ? null : ([...new Set(keys)] as string[])
}

/**
 * Throws 403 unless the calling token may read all that the webhook tells of: it is sent later, without the token, with all rights of
 * the user. A session has all rights of its user.
 */
export function requireWebhookAbilities(
  ctx: Context,
  { entity_type: only, events }: Pick<WebhookWithChanger, 'entity_type' | 'events'>,
): void {
  const { sights } = ctx.services
  const types = only === null ? typesOf(sights, JSON.parse(events) as string[]) : [only]
  const abilities = new Set([...(types ?? sights.keys())].map((type) => sightOf(ctx, type).lists.ability))
  for (const ability of abilities) assertCanCall(ctx, { permission: null, ability })
}

/** Bases of all events: `lead.update`. */
const bases = [...new Set(Object.values(operations).flatMap(({ events }: OperationFact) => events))]

/** The types of record that the events are about, by the event with which such a record goes; null when that does not tell. */
function typesOf(sights: Sights, patterns: readonly string[]): string[] | null {
  const matches = patterns.map(matcher)
  const named = bases.filter((base) => matches.some((isMeant) => isMeant(base) || isMeant(`${base}.after`)))
  const ofFamily = new Map(
    [...sights].flatMap(([type, { records }]) =>
      records?.deleted ? [[familyOf(records.deleted), type] as const] : [],
    ),
  )
  const types = named.map((base) => ofFamily.get(familyOf(base)))
  return types.includes(undefined) ? null : ([...new Set(types)] as string[])
}

const familyOf = (base: string): string => base.slice(0, base.lastIndexOf('.'))
