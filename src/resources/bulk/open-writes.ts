// The bulk writes of this server that are under way. They end when the server closes, because a
// client may send lines for hours.
import type { Services } from '../../kernel/context.ts'
import { perOwner } from '../../kernel/runtime/per-owner.ts'

const openOf = perOwner((_services: Services) => new Set<() => void>())

/** Remembers how to end a bulk write. Returns a function that forgets it. */
export function enterBulkWrite(services: Services, stop: () => void): () => void {
  const open = openOf(services)
  open.add(stop)
  return () => void open.delete(stop)
}

/** Ends all bulk writes after the batch that they are carrying out. */
export function endBulkWrites(services: Services): void {
  for (const stop of openOf(services)) stop()
}
