// The pages of a list contain each record once and in order, for every sort, page size and
// direction.
import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { textKey } from '../../db/schema/search-folding.ts'
import { parametersOf, follow as resolve } from '../support/schema.ts'
import { useSharedServer } from '../support/using.ts'
import { fill, follow, lists, type Page, pathOf, read } from './data.ts'

const server = useSharedServer()
beforeAll(async () => {
  await fill(server)
})

const operationOf = (list: string): string => `list${list.charAt(0).toUpperCase()}${list.slice(1)}`

function sortNames(list: string): string[] {
  const parameter = parametersOf(operationOf(list), 'query').find(({ name }) => name === 'sort')
  return resolve(parameter?.schema.items).enum as string[]
}

type Row = Page['data'][number]

/** Returns the value that a sort name sorts by. */
function shown(row: Row, name: string): unknown {
  if (Object.hasOwn(row, name)) return row[name]
  const [, ref = '', key = ''] = /^([a-z]+)_([a-z_]+)$/.exec(name) ?? []
  return row[ref] === null ? null : row[ref]?.[key]
}

function compare(a: Row, b: Row, sort: readonly string[]): number {
  for (const each of sort) {
    const name = each.replace('-', '')
    const [left, right] = [shown(a, name), shown(b, name)]
    if (left === right) continue
    if (left === null || right === null) return left === null ? 1 : -1
    const [x, y] = [left, right].map((value) => (typeof value === 'string' ? textKey(value) : Number(value)))
    if (x !== y && x !== undefined && y !== undefined) return (x < y ? -1 : 1) * (each.startsWith('-') ? -1 : 1)
  }
  return 0
}

const idsOf = (pages: readonly Page[]): number[] => pages.flatMap(({ data }) => data.map(({ id }) => id as number))

describe.each(lists)('%s', (list) => {
  const names = sortNames(list)
  const sorts = fc.uniqueArray(fc.constantFrom(...names), {
    minLength: 1,
    maxLength: 3,
    selector: (name) => name.replace('-', ''),
  })
  const queries = fc.record({
    sort: sorts,
    size: fc.integer({ min: 2, max: 12 }),
    filter: fc.constantFrom('', '&user_id[null]=false', '&q=a'),
  })
  const start = ({ sort, size, filter }: { sort: string[]; size: number; filter: string }) => {
    const known =
      filter === '' || parametersOf(operationOf(list), 'query').some(({ name }) => filter.startsWith(`&${name}=`))
    return `${pathOf(list)}?sort=${sort.join(',')}&per_page=${size}${known ? filter : ''}`
  }

  it('is met whole and in order, page by page', async () => {
    await fc.assert(
      fc.asyncProperty(queries, async (query) => {
        const whole = await read(server.admin, start({ ...query, size: 100 }))
        const pages = await follow(server.admin, start(query), 'next')
        expect(idsOf(pages)).toEqual(idsOf([whole]))
        expect(new Set(idsOf(pages)).size).toBe(whole.meta.total)
        for (const [index, row] of whole.data.entries()) {
          const next = whole.data[index + 1]
          if (next) expect(compare(row, next, query.sort)).toBeLessThanOrEqual(0)
        }
      }),
      { seed: 3, numRuns: 5 },
    )
  })

  it('is met whole and in the same order by cursor, forwards and back', async () => {
    await fc.assert(
      fc.asyncProperty(queries, async (query) => {
        const whole = await read(server.admin, start({ ...query, size: 100 }))
        const there = await follow(server.admin, `${start(query)}&cursor=`, 'next')
        expect(idsOf(there)).toEqual(idsOf([whole]))
        const last = there.at(-1)?.links.prev
        const back = last ? await follow(server.admin, `/${new URL(last).pathname}${new URL(last).search}`, 'prev') : []
        const behind = there.at(-1)?.data.map(({ id }) => id as number) ?? []
        expect([...idsOf(back.reverse()), ...behind]).toEqual(idsOf([whole]))
      }),
      { seed: 4, numRuns: 5 },
    )
  })

  it('does not skip or repeat a record by cursor when others come and go meanwhile', async () => {
    const url = `${pathOf(list)}?sort=${names[0]}&per_page=5&cursor=`
    const first = await read(server.admin, url)
    const next = new URL(first.links.next ?? '')
    const before = await read(server.admin, `/${next.pathname}${next.search}`)
    const gone = first.data.at(-1)?.id
    await server.admin.delete(`${pathOf(list)}/${gone}`)
    const after = await read(server.admin, `/${next.pathname}${next.search}`)
    expect(idsOf([after])).toEqual(idsOf([before]))
  })

  it('refuses the cursor of another sort or filter', async () => {
    const first = await read(server.admin, `${pathOf(list)}?sort=id&per_page=2&cursor=`)
    const cursor = first.meta.next_cursor
    for (const query of ['sort=-id', `sort=id&id[not]=1`, 'sort=name,id']) {
      const { status } = await server.admin.get(`${pathOf(list)}?${query}&per_page=2&cursor=${cursor}`)
      expect.soft([query, status]).toEqual([query, 422])
    }
  })
})
