// A filter returns the same records as the same predicate in JavaScript over the whole list. Tests
// the filters of the contract over visible fields, with values from the data.
import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { fold } from '../../src/kernel/values/format.ts'
import { parametersOf, typesOf } from '../support/schema.ts'
import { useSharedServer } from '../support/using.ts'
import { fill, lists, type Page, pathOf, read } from './data.ts'

const whole: Record<string, Page['data']> = {}
const server = useSharedServer()
beforeAll(async () => {
  await fill(server)
  for (const list of lists) whole[list] = (await read(server.admin, `${pathOf(list)}?per_page=100&sort=id`)).data
})

type Row = Page['data'][number]
interface Filter {
  name: string
  text: string
  holds: (row: Row) => boolean
}

const same = (a: unknown, b: unknown): boolean => (typeof a === 'string' ? fold(a) === fold(String(b)) : a === b)
const escaped = (value: unknown): string => encodeURIComponent(String(value).replaceAll(',', '\\,'))

const ranges: Record<string, (a: string | number, b: string | number) => boolean> = {
  gt: (a, b) => a > b,
  gte: (a, b) => a >= b,
  lt: (a, b) => a < b,
  lte: (a, b) => a <= b,
}

/** Returns the filters of the contract over fields of the rows, with values from the data. */
function filtersOf(list: string, rows: readonly Row[]): fc.Arbitrary<Filter>[] {
  const operation = `list${list.charAt(0).toUpperCase()}${list.slice(1)}`
  return parametersOf(operation, 'query').flatMap(({ name, schema }): fc.Arbitrary<Filter>[] => {
    const [, field = '', operator = ''] = /^([a-z_]+)(?:\[([a-z]+)\])?$/.exec(name) ?? []
    if (!rows.every((row) => Object.hasOwn(row, field))) return []
    if (operator === 'null') {
      return [
        fc
          .boolean()
          .map((isNull) => ({ name, text: String(isNull), holds: (row) => (row[field] === null) === isNull })),
      ]
    }
    const values = [...new Set(rows.map((row) => row[field] as string | number | boolean | null))].filter(
      (value) => value !== null && typeof value !== 'object',
    )
    if (values.length === 0) return []
    const one = fc.constantFrom(...(values as (string | number)[]))
    const range = ranges[operator]
    if (range)
      return [
        one.map((value) => ({
          name,
          text: escaped(value),
          holds: (row) => row[field] !== null && range(row[field], value),
        })),
      ]
    if (typesOf(schema)[0] !== 'array')
      return [
        one.map((value) => ({
          name,
          text: escaped(value),
          holds: (row) => same(row[field], value) !== (operator === 'not'),
        })),
      ]
    const some = fc.uniqueArray(one, { minLength: 1, maxLength: 3 })
    return [
      some.map((wanted) => ({
        name,
        text: wanted.map(escaped).join(','),
        holds: (row) => wanted.some((value) => same(row[field], value)) !== (operator === 'not'),
      })),
    ]
  })
}

const idsOf = (rows: readonly Row[]): number[] => rows.map(({ id }) => id as number)

describe.each(lists)('%s', (list) => {
  it('is narrowed by one filter, and by several at once, as JavaScript narrows it', async () => {
    const rows = whole[list] ?? []
    const filters = filtersOf(list, rows)
    expect(filters.length).toBeGreaterThan(4)
    const several = fc
      .uniqueArray(fc.nat(filters.length - 1), { minLength: 1, maxLength: 3 })
      .chain((indices) => fc.tuple(...indices.map((index) => filters[index] as fc.Arbitrary<Filter>)))
    await fc.assert(
      fc.asyncProperty(several, async (chosen) => {
        const query = chosen.map(({ name, text }) => `${encodeURIComponent(name)}=${text}`).join('&')
        const found = await read(server.admin, `${pathOf(list)}?per_page=100&sort=id&${query}`)
        expect(idsOf(found.data)).toEqual(idsOf(rows.filter((row) => chosen.every(({ holds }) => holds(row)))))
      }),
      { seed: 5, numRuns: 40 },
    )
  })
})

describe('q', () => {
  const name: Record<string, string> = { tags: 'name', sources: 'name', organizations: 'name' }

  it.each(Object.keys(name))('finds every word in any case, and takes %% and _ literally, in %s', async (list) => {
    const rows = whole[list] ?? []
    for (const q of ['acme', 'été', '100%', '%', 'a_b', '_', 'ACME 1', '\\', "'"]) {
      const words = fold(q).split(' ')
      const found = await read(server.admin, `${pathOf(list)}?per_page=100&sort=id&q=${encodeURIComponent(q)}`)
      const wanted = rows.filter((row) => words.every((word) => fold(String(row[name[list] ?? ''])).includes(word)))
      expect.soft([q, idsOf(found.data)]).toEqual([q, idsOf(wanted)])
    }
  })
})
