// Functions that compute values of the demo's story from an index or a time.

export const dayMs = 24 * 60 * 60_000
export const hourMs = 60 * 60_000
export const storyDays = 90

/** Returns the local part of an e-mail address: `jonas.weber` for `Jonas Weber`. */
export const asciiName = (name: string): string =>
  name
    .toLowerCase()
    .normalize('NFD')
    .replaceAll(/[^a-z ]/g, '')
    .replaceAll(' ', '.')

export const dateOf = (time: number): string => new Date(time).toISOString().slice(0, 10)

/**
 * Returns a time from 8:00 to 16:59 UTC on the day of `time`, or on the next Monday if that day is
 * on a weekend.
 */
export function workingHour(time: number, index: number): number {
  const date = new Date(time)
  const weekday = date.getUTCDay()
  const onward = weekday === 6 ? 2 : weekday === 0 ? 1 : 0
  const midnight = Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate() + onward)
  return midnight + (8 + ((index * 5) % 9)) * hourMs + ((index * 17) % 60) * 60_000
}

/** Returns an entry of the list; an index beyond the end starts again at the beginning. */
export function pick<T>(list: readonly T[], index: number): T {
  const found = list[index % list.length]
  if (found === undefined) throw new Error('The list is empty.')
  return found
}
