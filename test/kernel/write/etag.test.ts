// ETags identify the bytes of replies. Conditions compare them according to RFC 9110.
import { describe, expect, it } from 'vitest'
import type { Context } from '../../../src/kernel/context.ts'
import { byteTag, checkIfMatch, encodedTag, etagOf, matches } from '../../../src/kernel/write/etag.ts'

const asking = (ifMatch: string | null): Context => ({ ifMatch }) as Context

describe('etagOf', () => {
  it('is the version of a record and a hash of the bytes', () => {
    const lead = { data: { id: 1, version: 3 } }
    const tag = etagOf(lead, 'one', true)
    expect(tag).toMatch(/^"3-[\w-]{22}"$/)
    expect(etagOf(lead, 'one', true)).toBe(tag)
    expect(etagOf(lead, 'two', true)).not.toBe(tag)
  })

  it('is the version alone for a written record, and matches no GET', () => {
    expect(etagOf({ data: { id: 1, version: 3 }, message: 'Lead updated.' }, '', false)).toBe('"3"')
    expect(matches('"3"', byteTag('one', 3))).toBe(false)
  })

  it('is a hash of a reply without version, and changes with the reply', () => {
    const page = etagOf({ data: [], meta: {} }, 'one', true)
    expect(page).toMatch(/^"[\w-]{22}"$/)
    expect(etagOf({ data: [], meta: {} }, 'two', true)).not.toBe(page)
  })

  it('is none for messages and what a write without a version answers', () => {
    expect(etagOf({ message: 'Lead deleted.' }, '', false)).toBeUndefined()
    expect(etagOf({ data: { processed: [1], failed: [] }, message: '' }, '', false)).toBeUndefined()
  })
})

describe('If-None-Match', () => {
  const tag = byteTag('one', 3)

  it.each([
    [tag, true],
    [`W/${tag}`, true],
    [`"1", ${tag}`, true],
    [encodedTag(tag, 'br'), true],
    ['*', true],
    ['"3"', false],
    [byteTag('two', 3), false],
    [byteTag('one', 4), false],
    ['', false],
  ])('%s: %s', (header, isMatch) => expect(matches(header, tag)).toBe(isMatch))
})

describe('If-Match', () => {
  it.each([
    null,
    '"3"',
    'W/"3"',
    '*',
    '"1","3"',
    'W/"1", W/"3-gzip"',
    byteTag('one', 3),
    encodedTag(byteTag('', 3), 'br'),
  ])('%s passes version 3', (header) => expect(() => checkIfMatch(asking(header), 3)).not.toThrow())
  it.each(['"2"', 'W/"2"', '3', '', '"33"', byteTag('one', 2), byteTag('one'), '"3-other"'])('%s does not', (header) =>
    expect(() => checkIfMatch(asking(header), 3)).toThrow('version 3'),
  )
})
