// ETags identify a version or a page. Conditions compare them according to RFC 9110.
import { describe, expect, it } from 'vitest'
import type { Context } from '../../../src/kernel/context.ts'
import { checkIfMatch, etagOf, matches, versionTag } from '../../../src/kernel/write/etag.ts'

const asking = (ifMatch: string | null): Context => ({ ifMatch }) as Context

describe('etagOf', () => {
  it('is the version of a record, read or written', () => {
    expect(etagOf({ data: { id: 1, version: 3 } }, '', true)).toBe('"3"')
    expect(etagOf({ data: { id: 1, version: 3 }, message: 'Lead updated.' }, '', false)).toBe('"3"')
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
  it.each([
    ['"3"', true],
    ['W/"3"', true],
    ['"1", "3"', true],
    ['*', true],
    ['"33"', false],
    ['3', false],
    ['', false],
  ])('%s: %s', (header, isMatch) => expect(matches(header, versionTag(3))).toBe(isMatch))
})

describe('If-Match', () => {
  it.each([null, '"3"', 'W/"3"', '*', '"1","3"', 'W/"1", W/"3-gzip"'])('%s passes version 3', (header) =>
    expect(() => checkIfMatch(asking(header), 3)).not.toThrow(),
  )
  it.each(['"2"', 'W/"2"', '3', '', '"33"'])('%s does not', (header) =>
    expect(() => checkIfMatch(asking(header), 3)).toThrow('version 3'),
  )
})
