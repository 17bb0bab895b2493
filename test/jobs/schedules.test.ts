// Daily schedules are due once a day in every time zone, including days of 23 and 25 hours.
import fc from 'fast-check'
import { DateTime } from 'luxon'
import { describe, expect, it } from 'vitest'
import { lastDue } from '../../src/jobs/schedules.ts'

const due = (at: string | number, now: string, zone = 'Europe/Berlin'): string =>
  lastDue({ at }, new Date(now), zone).toISOString()

describe('lastDue', () => {
  it('is today once the time of day has come, and yesterday before', () => {
    expect(due('00:05', '2026-07-10T22:05:00Z')).toBe('2026-07-10T22:05:00.000Z')
    expect(due('00:05', '2026-07-10T22:04:59Z')).toBe('2026-07-09T22:05:00.000Z')
  })

  it('is when the clocks have gone forward for a time of day that is skipped', () => {
    expect(due('02:30', '2026-03-29T05:00:00Z')).toBe('2026-03-29T01:30:00.000Z')
  })

  it('is the first of the two for a time of day that comes twice, and not the second', () => {
    expect(due('02:30', '2026-10-25T00:30:00Z')).toBe('2026-10-25T00:30:00.000Z')
    expect(due('02:30', '2026-10-25T01:45:00Z')).toBe('2026-10-25T00:30:00.000Z')
  })

  it('is each number of minutes of the hour', () => {
    expect(due(5, '2026-03-01T09:34:59Z')).toBe('2026-03-01T09:30:00.000Z')
  })

  it('comes exactly once a day, whatever the zone, the year and the time of day', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(
          'UTC',
          'Europe/Berlin',
          'America/New_York',
          'Australia/Lord_Howe',
          'Asia/Kolkata',
          'America/Sao_Paulo',
        ),
        fc.integer({ min: 2000, max: 2037 }),
        fc.integer({ min: 0, max: 23 }),
        fc.integer({ min: 0, max: 59 }),
        (zone, year, hour, minute) => {
          const at = `${String(hour).padStart(2, '0')}:${String(minute).padStart(2, '0')}`
          const seen = new Map<string, string>()
          // Around all clock changes of the year.
          for (const start of [`${year}-03-07`, `${year}-03-25`, `${year}-10-03`, `${year}-10-24`, `${year}-11-01`]) {
            const from = DateTime.fromISO(start, { zone }).toMillis()
            for (let ms = from + 86_400_000; ms < from + 9 * 86_400_000; ms += 1_800_000) {
              const found = lastDue({ at }, new Date(ms), zone)
              expect(found.getTime()).toBeLessThanOrEqual(ms)
              const day = DateTime.fromJSDate(found, { zone }).toISODate() ?? ''
              expect(seen.get(day) ?? found.toISOString()).toBe(found.toISOString())
              seen.set(day, found.toISOString())
            }
          }
          expect(seen.size).toBeGreaterThan(38)
        },
      ),
      { numRuns: 3 },
    )
  })
})
