// How much memory the forms of bytes may take that are read and worked on (multipart.ts): their number has no other bound.
import type { Shape } from '../contract/normalise.ts'
import type { Context } from './context.ts'
import { Problem } from './errors.ts'

/**
 * Of a form of bytes all is in memory, several times over while it is worked on. So many bytes of them are taken at once, in the
 * whole process; whoever comes then comes again.
 */
const mostHeld = 3 * 32 * 1024 * 1024
let held = 0

/** Takes the memory for a form, by what it says of its length before it is read. */
export function hold(ctx: Context, { schema, longest }: { schema: Shape; longest: number }): () => void {
  if (schema['x-bytes'] !== true) return () => undefined
  const size = Number(ctx.headers['content-length'] ?? longest)
  if (held + size > mostHeld)
    throw new Problem('unavailable', 'Other large forms are being read.', { headers: { 'retry-after': '10' } })
  held += size
  return () => {
    held -= size
  }
}
