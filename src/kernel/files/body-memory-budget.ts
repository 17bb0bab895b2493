// Limits the memory for request bodies while they are read and handled. Their number has no other
// limit, and a slow sender holds its body for long. Only received bytes count, never the announced
// length.

import { networkOf } from '../auth/ip-ranges.ts'
import type { Services } from '../context.ts'
import { Problem } from '../errors.ts'

/**
 * The limits in bytes for all bodies together and for one client address. The latter keeps a few
 * slow senders from blocking all others.
 */
export interface MemoryPool {
  most: number
  maxOfOne: number
  /** The reserved bytes per client address, and their total under a key of its own. */
  lent: WeakMap<Services, Map<string, number>>
}
const mebibyte = 1024 * 1024
export const bodies: MemoryPool = { most: 128 * mebibyte, maxOfOne: 32 * mebibyte, lent: new WeakMap() }
/**
 * A form that carries bytes is in memory several times while it is handled, so its total is lower.
 * One form may have 31 MiB, so an address may use that much.
 */
export const formsOfBytes: MemoryPool = { most: 96 * mebibyte, maxOfOne: 32 * mebibyte, lent: new WeakMap() }
const all = ''

export interface Reservation {
  /**
   * Reserves more bytes. Returns false and reserves nothing when the budget is used up or the
   * reservation was released.
   */
  take(bytes: number): boolean
  giveBack(): void
}

/** A reservation without a limit, for bodies that count towards another limit. */
export const free: Reservation = { take: () => true, giveBack: () => undefined }

export const budgetExceeded = (): Problem =>
  new Problem('unavailable', 'Too many large bodies are being read.', { headers: { 'retry-after': '1' } })

/** Returns a reservation for a client address, which grows with the received bytes. */
export function reserve(services: Services, ip: string, { most, maxOfOne, lent }: MemoryPool = bodies): Reservation {
  const known = lent.get(services) ?? new Map<string, number>()
  lent.set(services, known)
  const address = `of ${networkOf(ip)}`
  const add = (key: string, bytes: number): void => {
    const now = (known.get(key) ?? 0) + bytes
    if (now > 0) known.set(key, now)
    else known.delete(key)
  }
  let taken = 0
  let isOver = false
  return {
    take(bytes) {
      if (isOver) return false
      if ((known.get(all) ?? 0) + bytes > most || (known.get(address) ?? 0) + bytes > maxOfOne) return false
      taken += bytes
      for (const key of [all, address]) add(key, bytes)
      return true
    },
    giveBack() {
      isOver = true
      for (const key of [all, address]) add(key, -taken)
      taken = 0
    },
  }
}
