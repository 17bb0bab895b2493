// A repeatable source of random numbers (mulberry32), and the values that random questions and
// their records share.

export function randomFrom(seed: number) {
  let state = seed
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
  const below = (most: number): number => Math.floor(next() * most)
  const chance = (p: number): boolean => next() < p
  const of = <T>(list: readonly T[]): T => list[below(list.length)] as T
  return {
    below,
    of,
    chance,
    maybe: <T>(value: T): T | undefined => (chance(0.5) ? value : undefined),
    some: <T>(list: readonly T[], p: number): T[] => list.filter(() => chance(p)),
  }
}
export type Random = ReturnType<typeof randomFrom>

export type Json = Record<string, any>

export const paths = {
  leads: '/leads',
  persons: '/contacts/persons',
  organizations: '/contacts/organizations',
  quotes: '/quotes',
  products: '/products',
  activities: '/activities',
  emails: '/emails',
} as const
export type Type = keyof typeof paths
export const types = Object.keys(paths) as Type[]

export const titles = [
  'Größe',
  'GRÖSSE',
  'grosse',
  "O'Brien & Co",
  '100% sicher',
  'a_b',
  'aXb',
  'Ørsted',
  'Zebra',
  'ze',
]
export const amounts = [0, 0.01, 99.99, 100, 100.01, 4821.5]
export const counts = [-3, 0, 1, 7, 40]
export const days = ['2026-03-28', '2026-03-29', '2026-03-30', '2027-01-01']
/** Moments at the ends of days in Europe/Berlin, where clocks change on the 29th. */
export const moments = [
  '2026-03-28T22:59:59.999Z',
  '2026-03-28T23:00:00.000Z',
  '2026-03-29T21:59:59.999Z',
  '2026-03-29T22:00:00.000Z',
]
