// The bulk writes of this server that are under way. They end when the server closes, because a
// client may send lines for hours. A caller has a limited number of them.
import type { Context, Services } from '../../kernel/context.ts'
import { countOpenCall, type OpenCalls } from '../../kernel/runtime/open-calls.ts'
import { perOwner } from '../../kernel/runtime/per-owner.ts'

const limits = { perToken: 5, perUser: 20, verb: 'send', nouns: 'bulk writes' }

const openOf = perOwner((_services: Services) => ({ stops: new Set<() => void>(), counts: new Map() as OpenCalls }))

/**
 * Remembers how to end a bulk write. Returns a function that forgets it. Throws 429 when the caller
 * has too many under way.
 */
export function enterBulkWrite(ctx: Context, stop: () => void): () => void {
  const { stops, counts } = openOf(ctx.services)
  const release = countOpenCall(counts, ctx, limits)
  stops.add(stop)
  return () => {
    stops.delete(stop)
    release()
  }
}

/** Ends all bulk writes after the batch that they are carrying out. */
export function endBulkWrites(services: Services): void {
  for (const stop of openOf(services).stops) stop()
}
