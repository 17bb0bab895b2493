// How much memory bodies may take that are read and worked on: their number has no other bound, and whoever sends slowly makes
// them last. Counted is what has come of them, never what they announce.

import { networkOf } from '../auth/ip-ranges.ts'
import type { Services } from '../context.ts'
import { Problem } from '../errors.ts'

/** Of all bodies at once, and of those from one address: a few that send slowly must not keep everybody else from sending. */
export interface MemoryPool {
  most: number
  maxOfOne: number
  /** By address; the sum under no address at all. */
  lent: WeakMap<Services, Map<string, number>>
}
const mebibyte = 1024 * 1024
export const bodies: MemoryPool = { most: 128 * mebibyte, maxOfOne: 32 * mebibyte, lent: new WeakMap() }
/**
 * Of a form of bytes all is in memory, several times over while it is worked on: fewer of them at once. One alone may have 31 MiB,
 * so an address may have as much as that.
 */
export const formsOfBytes: MemoryPool = { most: 96 * mebibyte, maxOfOne: 32 * mebibyte, lent: new WeakMap() }
const all = ''

export interface Reservation {
  /** False when there is no more, or it was given back; then nothing is taken. */
  take(bytes: number): boolean
  giveBack(): void
}

/** For what is counted otherwise. */
export const free: Reservation = { take: () => true, giveBack: () => undefined }

export const budgetExceeded = (): Problem =>
  new Problem('unavailable', 'Too many large bodies are being read.', { headers: { 'retry-after': '1' } })

/** Memory for what comes from an address, by bytes that have come. */
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
