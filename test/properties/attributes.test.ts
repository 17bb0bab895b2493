// Values of all sixteen attribute types are read back as written. Filters and sorts by them return
// the same records as JavaScript computes from the whole list.
import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { digitsOf } from '../../db/schema/search-folding.ts'
import { fold } from '../../src/kernel/values/format.ts'
import { file, form } from '../support/form.ts'
import { pixel } from '../support/pictures.ts'
import { useSharedServer } from '../support/using.ts'
import { attributes, type Values, valuesWith } from './attribute-values.ts'

const options: Record<string, number[]> = {}
const files: number[] = []

const server = useSharedServer()
beforeAll(async () => {
  for (const [type, more] of attributes) {
    const about = { code: `a_${type}`, name: type, type, entity_type: 'products', ...more }
    const { body, text, status } = await server.admin.post('/settings/attributes', about)
    expect(status === 201 ? 201 : text).toBe(201)
    options[type] = body.data.options.map(({ id }: { id: number }) => id)
  }
  for (const name of ['one.png', 'two.png']) {
    const { body, headers } = await form({ file: file(name, pixel) })
    files.push((await server.admin.post('/files', body, { headers })).body.data.id)
  }
  // The first record gets the files themselves, so that all others get copies.
  await create({ a_image: files[0], a_file: files[1] })
})

const values = () => valuesWith(options, files)

let count = 0
async function create(values: Values): Promise<{ id: number; custom_attributes: Values }> {
  const sent = { sku: `sku-${count++}`, name: 'Thing', price: 1, custom_attributes: values }
  const { status, body, text } = await server.admin.post('/products', sent)
  expect(status === 201 ? 201 : `${text} ${JSON.stringify(values)}`).toBe(201)
  return body.data
}

/**
 * Returns the expected values of a reply for written values: all codes, null for missing values,
 * and file names instead of ids.
 */
function shown(written: Values, names: Record<number, string>): Values {
  const codes = attributes.map(([type]) => `a_${type}`).filter((code) => code !== 'a_subheading')
  return Object.fromEntries(
    codes.map((code) => {
      const value = written[code] ?? null
      return [code, value !== null && /image|file/.test(code) ? names[value as number] : value]
    }),
  )
}

const named = (read: Values): Values =>
  Object.fromEntries(
    Object.entries(read).map(([code, value]) => [
      code,
      value !== null && /image|file/.test(code) ? (value as { name: string }).name : value,
    ]),
  )

describe('values of all types', () => {
  it('are read as they were written, merged by code, and change nothing when they are written back', async () => {
    const names = { [files[0] ?? 0]: 'one.png', [files[1] ?? 0]: 'two.png' }
    await fc.assert(
      fc.asyncProperty(values(), values(), async (first, second) => {
        const made = await create(first)
        const { a_boolean = false, ...rest } = first
        const before = { ...rest, a_boolean }
        expect(named(made.custom_attributes)).toEqual(shown(before, names))
        const { body, status, text } = await server.admin.put(`/products/${made.id}`, { custom_attributes: second })
        expect(status === 200 ? 200 : text).toBe(200)
        const merged = shown({ ...before, ...second }, names)
        expect(named(body.data.custom_attributes)).toEqual(merged)
        const again = await server.admin.put(`/products/${made.id}`, body.data)
        expect([again.status, again.body.data.version]).toEqual([200, body.data.version])
        expect((await server.admin.get(`/products/${made.id}`)).body.data).toEqual(again.body.data)
      }),
      { seed: 8, numRuns: 30 },
    )
  })
})

interface Row {
  id: number
  custom_attributes: Values
}

const compared: Record<string, (value: unknown) => unknown[]> = {
  a_text: (value) => [fold(String(value))],
  a_textarea: (value) => [fold(String(value))],
  a_url: (value) => [fold(String(value))],
  a_email: (value) => (value as { value: string }[]).map((point) => fold(point.value)),
  a_phone: (value) => (value as { value: string }[]).map((point) => digitsOf(point.value)),
  a_image: (value) => [(value as { id: number }).id],
}
const keysOf = (code: string, value: unknown): unknown[] =>
  value === null ? [] : (compared[code]?.(value) ?? [value].flat())

describe('lists by attributes', () => {
  let rows: Row[] = []
  const path = '/products?per_page=100&name=listed'
  beforeAll(async () => {
    const some = fc.sample(values(), { seed: 3, numRuns: 40 })
    for (const custom_attributes of some) {
      const { id } = await create(custom_attributes)
      await server.admin.put(`/products/${id}`, { name: 'listed' })
    }
    rows = (await server.admin.get(`${path}&sort=id`)).body.data
    expect(rows).toHaveLength(40)
  })

  const filterable = [
    'text',
    'textarea',
    'number',
    'price',
    'boolean',
    'select',
    'multiselect',
    'checkbox',
    'email',
    'phone',
  ]
    .concat('url', 'lookup', 'datetime', 'date', 'image')
    .map((type) => `a_${type}`)

  it('are narrowed as JavaScript narrows them', async () => {
    const chosen = fc.uniqueArray(
      fc.constantFrom(...filterable).chain((code) => {
        // A backslash before a comma escapes it, so that such a value can only stand last.
        const keys = [...new Set(rows.flatMap((row) => keysOf(code, row.custom_attributes[code])))].filter(
          (key) => !String(key).endsWith('\\'),
        )
        return fc.record({
          code: fc.constant(code),
          wanted: fc.uniqueArray(fc.constantFrom(...keys), { maxLength: 3 }),
        })
      }),
      { minLength: 1, maxLength: 2, selector: ({ code }) => code },
    )
    await fc.assert(
      fc.asyncProperty(chosen, async (filters) => {
        const query = filters
          .map(({ code, wanted }) => {
            const text = wanted.map((each) => String(each).replaceAll(',', '\\,')).join(',')
            return `custom_attributes[${code}]=${encodeURIComponent(text)}`
          })
          .join('&')
        const found = await server.admin.get(`${path}&sort=id&${query}`)
        const holds = (row: Row): boolean =>
          filters.every(({ code, wanted }) =>
            keysOf(code, row.custom_attributes[code]).some((key) => wanted.includes(key)),
          )
        expect([query, found.body.data?.map(({ id }: Row) => id)]).toEqual([
          query,
          rows.filter(holds).map(({ id }) => id),
        ])
      }),
      { seed: 4, numRuns: 60 },
    )
  })

  it('are narrowed by [not], [null] and ranges as JavaScript narrows them', async () => {
    const found = async (query: string) => {
      const { status, body } = await server.admin.get(`${path}&sort=id&${query}`)
      expect([query, status]).toEqual([query, 200])
      return body.data.map(({ id }: Row) => id)
    }
    const idsOf = (holds: (row: Row) => boolean): number[] => rows.filter(holds).map(({ id }) => id)
    for (const code of filterable) {
      const keysIn = (row: Row) => keysOf(code, row.custom_attributes[code])
      const filled = (row: Row) => keysIn(row).length > 0
      expect(await found(`custom_attributes[${code}][null]=true`), code).toEqual(idsOf((row) => !filled(row)))
      expect(await found(`custom_attributes[${code}][null]=false`), code).toEqual(idsOf(filled))
      const [key] = rows.flatMap(keysIn)
      const text = encodeURIComponent(String(key).replaceAll(',', '\\,'))
      const without = idsOf((row) => !keysIn(row).includes(key))
      expect(await found(`custom_attributes[${code}][not]=${text}`), code).toEqual(without)
    }
    const comparisons = {
      gt: (a: any, b: any) => a > b,
      gte: (a: any, b: any) => a >= b,
      lt: (a: any, b: any) => a < b,
      lte: (a: any, b: any) => a <= b,
    }
    for (const code of ['a_number', 'a_price', 'a_date', 'a_datetime'])
      for (const [operator, holds] of Object.entries(comparisons)) {
        const bound = rows.map((row) => row.custom_attributes[code]).find((value) => value !== null) as string
        const query = `custom_attributes[${code}][${operator}]=${encodeURIComponent(bound)}`
        const within = idsOf(({ custom_attributes: { [code]: value } }) => value !== null && holds(value, bound))
        expect(await found(query), query).toEqual(within)
      }
  })

  it('are sorted as JavaScript sorts them, unset values last', async () => {
    const order = new Map((options.select ?? []).map((id, index) => [id, index]))
    const rank = (code: string, value: unknown): string | number =>
      code === 'a_select'
        ? (order.get(value as number) ?? 0)
        : code === 'a_text' || code === 'a_url'
          ? fold(String(value))
          : Number.isFinite(Number(value))
            ? Number(value)
            : String(value)
    const bytes = (text: string): Buffer => Buffer.from(text)
    const compare = (a: string | number, b: string | number): number =>
      typeof a === 'string' && typeof b === 'string' ? Buffer.compare(bytes(a), bytes(b)) : Number(a) - Number(b)
    for (const code of ['a_text', 'a_url', 'a_number', 'a_price', 'a_boolean', 'a_date', 'a_datetime', 'a_select']) {
      for (const sign of ['', '-']) {
        const { body } = await server.admin.get(`${path}&sort=${sign}custom_attributes.${code},id`)
        const direction = sign === '' ? 1 : -1
        const wanted = [...rows].sort((one, other) => {
          const [a, b] = [one, other].map((row) => row.custom_attributes[code])
          if (a === null || b === null) return Number(a === null) - Number(b === null) || one.id - other.id
          return direction * compare(rank(code, a), rank(code, b)) || one.id - other.id
        })
        expect.soft([code, sign, body.data.map(({ id }: Row) => id)]).toEqual([code, sign, wanted.map(({ id }) => id)])
      }
    }
  })
})
