// Timestamps in requests, forms and files: a text without an offset is a time in
// ACCORD_TIMEZONE, and a date without a time is midnight there.
import { readSheet } from 'read-excel-file/universal'
import { beforeAll, describe, expect, it } from 'vitest'
import { csvOf, importing } from '../support/importing.ts'
import { useSharedServer } from '../support/using.ts'
import { workbook } from '../support/workbook.ts'

const server = useSharedServer({ config: { timezone: 'America/New_York' } })
beforeAll(async () => {
  const visited = { code: 'visited', name: 'Visited', type: 'datetime', entity_type: 'organizations' }
  expect((await server.admin.post('/settings/attributes', visited)).status).toBe(201)
})

const spellings = [
  ['2026-07-01', '2026-07-01T04:00:00.000Z'],
  ['2026-07-01 09:30', '2026-07-01T13:30:00.000Z'],
  ['2026-07-01T09:30:00Z', '2026-07-01T09:30:00.000Z'],
] as const

async function stored(): Promise<Record<string, string>> {
  const { body } = await server.admin.get('/contacts/organizations?per_page=100')
  return Object.fromEntries(body.data.map(({ name, custom_attributes: { visited } }: any) => [name, visited]))
}

describe('a timestamp', () => {
  it('is the same moment by REST, from a CSV and from a workbook', async () => {
    for (const [text] of spellings)
      await server.admin.post('/contacts/organizations', { name: `rest ${text}`, custom_attributes: { visited: text } })
    const rows = (way: string) => [['name', 'visited'], ...spellings.map(([text]) => [`${way} ${text}`, text])]
    const using = importing(server.admin)
    await using.run('organizations', csvOf(rows('csv')))
    await using.run('organizations', workbook(rows('xlsx')))
    const ways = ['rest', 'csv', 'xlsx'].flatMap((way) => spellings.map(([text, time]) => [`${way} ${text}`, time]))
    expect(await stored()).toEqual(Object.fromEntries(ways))
  })

  it('in a date cell of a workbook is what the sheet shows', async () => {
    await importing(server.admin).run(
      'organizations',
      workbook([
        ['name', 'visited'],
        ['day', new Date('2026-07-01T00:00:00Z')],
        ['noon', new Date('2026-07-01T12:00:00Z')],
      ]),
    )
    expect(await stored()).toMatchObject({ day: '2026-07-01T04:00:00.000Z', noon: '2026-07-01T16:00:00.000Z' })
  })

  it('of a built-in field follows the rule, and so does a filter', async () => {
    const call = { type: 'call', title: 'Call', schedule_from: '2026-07-01', schedule_to: '2026-07-02' }
    const { status, body } = await server.admin.post('/activities', call)
    expect([status, body.data?.schedule_from]).toEqual([201, '2026-07-01T04:00:00.000Z'])
    const at = async (query: string) => (await server.admin.get(`/activities?${query}`)).body.meta.total
    expect([await at('schedule_from[gte]=2026-07-01'), await at('schedule_from[lt]=2026-07-01')]).toEqual([1, 0])
  })

  it('is a date cell of an exported workbook, and the same moment after an import of it', async () => {
    const moments = {
      winter: '2026-01-15T17:00:00.250Z',
      summer: '2026-07-15T03:59:59.000Z',
      midnight: '2026-07-01T04:00:00.000Z',
      first: '2026-11-01T05:30:00.000Z',
      // The clock shows 01:30 again.
      second: '2026-11-01T06:30:00.000Z',
      none: null,
    }
    await server.admin.post('/settings/attributes', {
      code: 'founded',
      name: 'Founded',
      type: 'date',
      entity_type: 'organizations',
    })
    for (const [name, visited] of Object.entries(moments))
      await server.admin.post('/contacts/organizations', {
        name,
        custom_attributes: { visited, founded: name === 'winter' ? '1898-05-01' : '2020-02-29' },
      })
    const { rawPayload: bytes } = await server.app.http.inject({
      method: 'GET',
      url: `/api/admin/contacts/organizations/export?format=xlsx&name=${Object.keys(moments)}`,
      headers: { authorization: `Bearer ${server.admin.token}` },
    })
    const [names = [], ...rows] = await readSheet(new Uint8Array(bytes).buffer as ArrayBuffer)
    const cells = (column: string) =>
      Object.fromEntries(rows.map((row) => [row[names.indexOf('name')], row[names.indexOf(column)]]))
    expect(cells('visited')).toEqual({
      winter: new Date('2026-01-15T12:00:00.250Z'),
      summer: new Date('2026-07-14T23:59:59Z'),
      midnight: new Date('2026-07-01T00:00:00Z'),
      first: new Date('2026-11-01T01:30:00Z'),
      second: moments.second,
      none: null,
    })
    const day = new Date('2020-02-29T00:00:00Z')
    expect(cells('founded')).toMatchObject({ winter: '1898-05-01', summer: day, none: day })
    expect(cells('created_at').winter).toBeInstanceOf(Date)
    const done = await importing(server.admin).run('organizations', new Uint8Array(bytes))
    expect(done).toMatchObject({ errors: [], preview: { unchanged: 6 } })
    expect(await stored()).toMatchObject(moments)
  })
})
