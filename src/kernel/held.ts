// How much memory bodies may take that are read and worked on: their number has no other bound, and whoever sends slowly makes
// them last. Forms of bytes are counted by what they announce (multipart.ts), all others by what has come of them.
import type { Shape } from '../contract/normalise.ts'
import type { Context, Services } from './context.ts'
import { Problem } from './errors.ts'
import { networkOf } from './ratelimit.ts'

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

/** Of all bodies at once, and of those from one address: a few that send slowly must not keep everybody else from sending. */
const mostLent = 128 * 1024 * 1024
const mostLentToOne = mostLent / 4
/** By address; the sum under no address at all. */
const lent = new WeakMap<Services, Map<string, number>>()
const all = ''

export interface Loan {
  /** False when there is no more; then nothing is taken. */
  take(bytes: number): boolean
  giveBack(): void
}

/** For what is counted otherwise. */
export const free: Loan = { take: () => true, giveBack: () => undefined }

export const tooMuch = (): Problem =>
  new Problem('unavailable', 'Too many large bodies are being read.', { headers: { 'retry-after': '1' } })

/** Memory for what comes from an address, by bytes that have come. */
export function borrow(services: Services, ip: string): Loan {
  const known = lent.get(services) ?? new Map<string, number>()
  lent.set(services, known)
  const address = `of ${networkOf(ip)}`
  const add = (key: string, bytes: number): void => {
    const now = (known.get(key) ?? 0) + bytes
    if (now > 0) known.set(key, now)
    else known.delete(key)
  }
  let taken = 0
  return {
    take(bytes) {
      if ((known.get(all) ?? 0) + bytes > mostLent || (known.get(address) ?? 0) + bytes > mostLentToOne) return false
      taken += bytes
      for (const key of [all, address]) add(key, bytes)
      return true
    },
    giveBack() {
      for (const key of [all, address]) add(key, -taken)
      taken = 0
    },
  }
}
