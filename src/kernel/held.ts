// How much memory the forms of bytes may take that are read and worked on (multipart.ts): their number has no other bound.
import type { Shape } from '../contract/normalise.ts'
import type { Context, Services } from './context.ts'
import { Problem } from './errors.ts'

/**
 * Of a form of bytes all is in memory, several times over while it is worked on. So many bytes of them are taken at once, by the
 * whole server; whoever comes then comes again.
 */
const mostHeld = 3 * 32 * 1024 * 1024
/** How much that is now, for each server. */
const held = new WeakMap<Services, number>()

/** Takes the memory for a form, by what it says of its length before it is read. */
export function hold(ctx: Context, { schema, longest }: { schema: Shape; longest: number }): () => void {
  if (schema['x-bytes'] !== true) return () => undefined
  const size = Number(ctx.headers['content-length'] ?? longest)
  const now = (): number => held.get(ctx.services) ?? 0
  if (now() + size > mostHeld)
    throw new Problem('unavailable', 'Other large forms are being read.', { headers: { 'retry-after': '10' } })
  held.set(ctx.services, now() + size)
  return () => void held.set(ctx.services, now() - size)
}
