// Timestamps in requests, forms and files: a text without an offset is a time in
// ACCORD_TIMEZONE, and a date without a time is midnight there.
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
})
