// Limits the memory for request bodies while they are read and handled. Without this limit, many
// slow senders could occupy all memory. Only received bytes count, not the Content-Length.

import { clientNetwork } from '../auth/ip-ranges.ts'
import type { Services } from '../context.ts'
import { Problem } from '../errors.ts'

/**
 * The limits for a kind of body, in bytes: `maxOfAll` for all bodies together, `maxOfOne` for one
 * client network. `maxOfOne` keeps a few slow senders from blocking all others.
 */
export interface MemoryPool {
  maxOfAll: number
  maxOfOne: number
  /** The reserved bytes of each server, by client network. The key `''` contains the total. */
  lent: WeakMap<Services, Map<string, number>>
}
const mebibyte = 1024 * 1024
export const bodies: MemoryPool = { maxOfAll: 128 * mebibyte, maxOfOne: 32 * mebibyte, lent: new WeakMap() }
/**
 * The limits for forms with `x-bytes`, whose texts are bytes in an unknown charset. Such a form is
 * in memory several times while it is handled, so the total is lower. One form may have 31 MiB, so
 * one client network may use 32 MiB.
 */
export const formsOfBytes: MemoryPool = { maxOfAll: 96 * mebibyte, maxOfOne: 32 * mebibyte, lent: new WeakMap() }
const all = ''

export interface Reservation {
  /**
   * Reserves more bytes. Returns false without reserving when a limit would be exceeded or
   * `release` was called.
   */
  grow(bytes: number): boolean
  release(): void
}

/** A reservation without a limit, for bodies that another reservation counts. */
export const unlimited: Reservation = { grow: () => true, release: () => undefined }

export const budgetExceeded = (): Problem =>
  new Problem('unavailable', 'Too many large bodies are being read.', { headers: { 'retry-after': '1' } })

/**
 * Returns a reservation for the network of an IP address. It starts at 0 bytes and grows with
 * `grow`.
 */
export function reserve(
  services: Services,
  ip: string,
  { maxOfAll, maxOfOne, lent }: MemoryPool = bodies,
): Reservation {
  const known = lent.get(services) ?? new Map<string, number>()
  lent.set(services, known)
  const address = `of ${clientNetwork(ip)}`
  const add = (key: string, bytes: number): void => {
    const now = (known.get(key) ?? 0) + bytes
    if (now > 0) known.set(key, now)
    else known.delete(key)
  }
  let taken = 0
  let isOver = false
  return {
    grow(bytes) {
      if (isOver) return false
      if ((known.get(all) ?? 0) + bytes > maxOfAll || (known.get(address) ?? 0) + bytes > maxOfOne) return false
      taken += bytes
      for (const key of [all, address]) add(key, bytes)
      return true
    },
    release() {
      isOver = true
      for (const key of [all, address]) add(key, -taken)
      taken = 0
    },
  }
}
