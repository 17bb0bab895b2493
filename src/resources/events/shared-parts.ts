// Shares the work of event streams. Streams whose callers have the same rights, filters and
// position get the same part of the log, so an event is read, checked and serialized once for each
// view and not once for each stream.

import type { Expression, SqlBool } from 'kysely'
import { LRUCache } from 'lru-cache'
import type { Schema } from '../../contract/types.ts'
import { renewed } from '../../kernel/auth/sessions.ts'
import type { Context, Services } from '../../kernel/context.ts'
import { credentialIdOf } from '../../kernel/runtime/open-calls.ts'
import { perOwner } from '../../kernel/runtime/per-owner.ts'
import { readEntries } from './read-log.ts'
import { passOf } from './streams.ts'

/** The text of some events, and the position after them. `text` is null when there are none. */
export interface StreamPart {
  text: string | null
  next: number
  hasMore: boolean
}

interface KnownCaller {
  caller: Promise<Context | undefined>
  /** The time of the check in milliseconds. */
  at: number
  /** The number of changes of rights before the check. */
  changes: number
}

interface Shared {
  parts: LRUCache<string, Promise<StreamPart>>
  callers: LRUCache<string, KnownCaller>
  /** The number of changes of rights by this process. */
  changes: number
}

const maxParts = 200
const maxCallers = 20_000
/** The maximum age of a check of rights in milliseconds, because other processes change rights. */
const maxAgeMs = 1_000
/** The types of records that determine the rights of callers. */
const rights = new Set(['users', 'roles', 'groups', 'tokens', 'sessions'])

const shared = perOwner((services: Services): Shared => {
  const made: Shared = {
    parts: new LRUCache({ max: maxParts }),
    callers: new LRUCache({ max: maxCallers }),
    changes: 0,
  }
  services.events.on('*', ({ entityType }) => {
    if (rights.has(entityType)) made.changes++
  })
  return made
})

/**
 * Identifies a caller. A token may be limited to networks, and a session to pages of known hosts.
 */
const callerKey = (ctx: Context): string => `${credentialIdOf(ctx)} ${ctx.ip} ${ctx.requestOrigin}`

/** Stores the rights of a caller who has just been authenticated, for `renewedCaller`. */
export function rememberCaller(ctx: Context): void {
  const { callers, changes } = shared(ctx.services)
  callers.set(callerKey(ctx), { caller: Promise.resolve(ctx), at: ctx.services.clock.now().getTime(), changes })
}

/**
 * Returns the context with the caller's current rights, or undefined when the caller may no longer
 * follow events. Streams of one token or session from one address share a check.
 */
export async function renewedCaller(ctx: Context): Promise<Context | undefined> {
  const { callers, changes } = shared(ctx.services)
  const at = ctx.services.clock.now().getTime()
  const reader = callerKey(ctx)
  const known = callers.get(reader)
  const isCurrent = known !== undefined && known.changes === changes && Math.abs(at - known.at) < maxAgeMs
  const caller = isCurrent ? known.caller : renewed(ctx, 'listEvents')
  if (!isCurrent) {
    callers.set(reader, { caller, at, changes })
    caller.catch(() => callers.delete(reader))
  }
  const current = await caller
  return current && { ...ctx, user: current.user, token: current.token, session: current.session, time: current.time }
}

/** Returns everything on which the events that the caller sees depend, apart from the log. */
const viewOf = ({ user, token, session, baseUrl, query }: Context): string => {
  const filters = new URLSearchParams(query)
  filters.delete('after')
  const { permissions, ...facts } = user ?? { permissions: null }
  const allowed = permissions instanceof Set ? [...permissions].sort() : permissions
  return JSON.stringify([facts, allowed, token?.abilities ?? null, session === null, baseUrl, String(filters)])
}

/**
 * Returns the next events after the position, as server-sent events. Streams with the same view and
 * position that are woken by the same event get one result.
 */
export function nextPart(
  caller: Context,
  filters: readonly Expression<SqlBool>[],
  place: number,
  size: number,
): Promise<StreamPart> {
  const { parts } = shared(caller.services)
  const key = `${passOf(caller.services)} ${place} ${viewOf(caller)}`
  const known = parts.get(key)
  if (known) return known
  const part = readEntries(caller, filters, place, size).then(({ entries, next, hasMore }) => ({
    text: entries.length === 0 ? null : entries.map(block).join(''),
    next,
    hasMore,
  }))
  parts.set(key, part)
  part.catch(() => parts.delete(key))
  return part
}

const block = (entry: Schema<'EventEntry'>): string =>
  `id: ${entry.id}\nevent: ${entry.name}\ndata: ${JSON.stringify(entry)}\n\n`
