// Handler of the change feed. It returns one page of events, or a stream of events
// for a client that prefers `text/event-stream`. read-log.ts reads the event log, and
// event-visibility.ts filters the events.

import type { Context } from '../../kernel/context.ts'
import { invalid } from '../../kernel/errors.ts'
import { preferred } from '../../kernel/files/content-negotiation.ts'
import type { Handler, Handlers } from '../../kernel/handler.ts'
import { newestEvent } from '../../kernel/write/event-log.ts'
import { checkPlace, eventFilters, findOldestId, readEntries } from './read-log.ts'
import { followEvents } from './stream.ts'

const eventStreamType = 'text/event-stream'

const listEvents: Handler<'listEvents'> = async (ctx, { query }) => {
  const filters = eventFilters(ctx, query)
  const oldest = await findOldestId(ctx)
  if (preferred(ctx, ['application/json', eventStreamType]) === eventStreamType) {
    const last = lastEventId(ctx)
    const after = last ?? query.after ?? (await newestEvent(ctx))
    await ctx.services.store.whenDurable()
    await checkPlace(ctx, last === undefined ? 'query.after' : 'header.Last-Event-ID', after, oldest)
    return followEvents(ctx, filters, after)
  }
  const after = query.after ?? 0
  await checkPlace(ctx, 'query.after', after, oldest)
  const { entries, next, hasMore } = await readEntries(ctx, filters, after, query.per_page ?? 10)
  return { data: entries, meta: { next_after: next, has_more: hasMore, oldest_id: oldest } }
}

/**
 * Returns the event id in the header `Last-Event-ID`, which a reconnecting client sends. Returns
 * undefined without the header, and throws 422 for any other text.
 */
function lastEventId({ headers }: Context): number | undefined {
  const sent = headers['last-event-id']
  if (sent === undefined || sent === '') return undefined
  if (typeof sent === 'string' && /^\d{1,15}$/.test(sent)) return Number(sent)
  throw invalid({ 'header.Last-Event-ID': ['Must be the id of an event.'] })
}

export const handlers = { listEvents } satisfies Partial<Handlers>
