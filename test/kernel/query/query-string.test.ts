// The query string of a link to another page.
import { describe, expect, it } from 'vitest'
import { withParameters } from '../../../src/kernel/query/query-string.ts'

describe('a query string with another page', () => {
  it.each([
    ['', 'page=2'],
    ['page=1&q=a', 'page=2&q=a'],
    ['q=a&page=1&page=3', 'q=a&page=2'],
    ['name=A,B&page=1', 'name=A,B&page=2'],
    ['name=ACME%2C%20Inc.,B', 'name=ACME%2C+Inc.,B&page=2'],
    ['created_at[gte]=2026-01-01', 'created_at%5Bgte%5D=2026-01-01&page=2'],
    ['q=a>b"&&x', 'q=a%3Eb%22&x=&page=2'],
    ['q=%C3%A4', 'q=%C3%A4&page=2'],
  ])('keeps %j otherwise', (raw, expected) => expect(withParameters(raw, { page: '2' })).toBe(expected))
})
