// Times as people read them: locale, zone, both days of a change of the clock, and short forms.
import { describe, expect, it } from 'vitest'
import { daysText, momentText, periodText, shortText } from '../../../src/kernel/values/moments.ts'

/** The spaces of ICU differ between versions of Node. */
const plain = (text: string): string => text.replaceAll(/[\u2009\u202f\u00a0]/g, ' ')
const berlin = (locale: string) => ({ zone: 'Europe/Berlin', locale })

describe('periodText', () => {
  it.each([
    ['en-GB', 'Friday, 27 November 2026, 09:46–10:46 CET'],
    ['en-US', 'Friday, November 27, 2026, 9:46 – 10:46 AM GMT+1'],
    ['de', 'Freitag, 27. November 2026, 09:46–10:46 Uhr MEZ'],
    ['fr', 'vendredi 27 novembre 2026, 09:46 – 10:46 UTC+1'],
    ['es', 'viernes, 27 de noviembre de 2026, 9:46–10:46 CET'],
  ])('names day, times and zone in %s', (locale, expected) => {
    expect(plain(periodText('2026-11-27T08:46:00Z', '2026-11-27T09:46:00Z', berlin(locale)))).toBe(expected)
  })

  it('names both zones when the clock changes in between', () => {
    const spring = plain(periodText('2027-03-27T23:30:00Z', '2027-03-28T02:30:00Z', berlin('en-GB')))
    expect(spring).toBe('Sunday, 28 March 2027 at 00:30 CET – Sunday, 28 March 2027 at 04:30 CEST')
    const autumn = plain(periodText('2026-10-25T00:30:00Z', '2026-10-25T01:30:00Z', berlin('en-GB')))
    expect(autumn).toBe('Sunday, 25 October 2026 at 02:30 CEST – Sunday, 25 October 2026 at 02:30 CET')
  })

  it('is one time for equal ends, and has both days of a night', () => {
    const at = '2026-11-27T22:30:00Z'
    expect(plain(periodText(at, at, berlin('en-GB')))).toBe('Friday, 27 November 2026 at 23:30 CET')
    expect(plain(periodText(at, '2026-11-28T00:30:00Z', berlin('en-GB')))).toContain('Saturday, 28 November')
  })
})

describe('daysText', () => {
  it('has one day or both', () => {
    expect(daysText('2026-11-27', '2026-11-27', berlin('en-GB'))).toBe('Friday, 27 November 2026')
    expect(plain(daysText('2026-11-27', '2026-11-29', berlin('de')))).toBe('Freitag, 27. – Sonntag, 29. November 2026')
  })
})

describe('shortText', () => {
  const now = new Date('2026-12-31T23:30:00Z')
  it.each([
    ['2026-11-27T08:46:00Z', '27 November 2026, 9:46'],
    // In Berlin the new year has begun.
    ['2027-01-27T08:46:00Z', '27 January, 9:46'],
    ['2027-06-27', '27 June'],
    ['soon', 'soon'],
  ])('has the year of %s only when it is not this one', (text, expected) => {
    expect(shortText(text, now, berlin('en-GB'))).toBe(expected)
  })
})

describe('momentText', () => {
  it('names the zone of a time, has no time for a date, and leaves other texts', () => {
    expect(plain(momentText('2026-07-01T09:00:00Z', berlin('en-GB')))).toBe('1 July 2026 at 11:00 CEST')
    expect(momentText('2026-07-01', berlin('de'))).toBe('1. Juli 2026')
    expect(momentText('soon', berlin('de'))).toBe('soon')
  })
})
