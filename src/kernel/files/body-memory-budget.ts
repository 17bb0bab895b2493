// The memory that request bodies may use while they are read and handled: nothing else bounds their
// number, and a slow sender keeps one for long. Only received bytes count, never the announced
// length.

import { networkOf } from '../auth/ip-ranges.ts'
import type { Services } from '../context.ts'
import { Problem } from '../errors.ts'

/**
 * The limit for all bodies and for one address, so that a few slow senders cannot block all others.
 */
export interface MemoryPool {
  most: number
  maxOfOne: number
  /** By address; the total has a key of its own. */
  lent: WeakMap<Services, Map<string, number>>
}
const mebibyte = 1024 * 1024
export const bodies: MemoryPool = { most: 128 * mebibyte, maxOfOne: 32 * mebibyte, lent: new WeakMap() }
/**
 * A form of bytes is in memory several times while it is handled, so fewer of them may run at once.
 * One may have 31 MiB, so an address may use that much.
 */
export const formsOfBytes: MemoryPool = { most: 96 * mebibyte, maxOfOne: 32 * mebibyte, lent: new WeakMap() }
const all = ''

export interface Reservation {
  /** False when the budget is used up or the reservation was released; then nothing is taken. */
  take(bytes: number): boolean
  giveBack(): void
}

/** For bodies that another limit counts. */
export const free: Reservation = { take: () => true, giveBack: () => undefined }

export const budgetExceeded = (): Problem =>
  new Problem('unavailable', 'Too many large bodies are being read.', { headers: { 'retry-after': '1' } })

/** A reservation for an address, which grows with the received bytes. */
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
