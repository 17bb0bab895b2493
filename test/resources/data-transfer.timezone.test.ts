// Times of a CSV export in the time zone of the installation, and an import of the same file.
import { parse } from 'csv-parse/sync'
import { expect, it } from 'vitest'
import { given } from '../support/given.ts'
import { csvOf, importing } from '../support/importing.ts'
import { useServer } from '../support/using.ts'

const server = useServer({ config: { timezone: 'Europe/Berlin' } })

/** UTC, and what a clock in Berlin shows. The second 02:30 of the last night is not distinct. */
const times = [
  ['2026-01-01T11:00:00.000Z', '2026-01-01 12:00:00'],
  ['2026-07-01T10:00:00.250Z', '2026-07-01 12:00:00.250'],
  ['2026-10-25T00:30:00.000Z', '2026-10-25 02:30:00'],
  ['2026-10-25T01:30:00.000Z', '2026-10-25T01:30:00.000Z'],
  ['2026-03-29T01:30:00.000Z', '2026-03-29 03:30:00'],
] as const

async function rows(query: string): Promise<Record<string, string>[]> {
  const { status, text } = await server.admin.get(`/activities/export?format=csv${query}`)
  expect(status, text).toBe(200)
  return parse(text, { columns: true, bom: true })
}

it('are local with `timezone=installation`, and UTC by default', async () => {
  const make = given(server.admin)
  for (const [at] of times) await make.activity({ type: 'meeting', title: at, schedule_from: at, schedule_to: at })
  const local = await rows('&timezone=installation&sort=id')
  expect(local.map((row) => [row.title, row.schedule_from])).toEqual(times)
  const utc = await rows('&sort=id')
  expect(utc.map((row) => row.schedule_from)).toEqual(times.map(([at]) => at))
  expect((await server.admin.get('/activities/export?timezone=berlin')).status).toBe(422)
})

it('are read back by an import as the same times', async () => {
  const { admin } = server
  const attribute = { code: 'met_at', name: 'Met', entity_type: 'persons', type: 'datetime' }
  expect((await admin.post('/settings/attributes', attribute)).status).toBe(201)
  const make = given(admin)
  const ids: number[] = []
  for (const [met_at] of times) ids.push((await make.person({ custom_attributes: { met_at } })).id)
  const { text } = await admin.get(
    `/contacts/persons/export?format=csv&timezone=installation&id=${ids.join(',')}&sort=id`,
  )
  const exported = parse(text, { columns: true, bom: true }) as Record<string, string>[]
  expect(exported.map((row) => row.met_at)).toEqual(times.map(([, local]) => local))
  const email = (index: number): string => `again${index}@example.com`
  const table = [
    ['name', 'emails', 'met_at'],
    ...exported.map(({ name = '', met_at = '' }, index) => [`${name} again`, email(index), met_at]),
  ]
  const { summary, errors } = await importing(admin).run('persons', csvOf(table))
  expect([summary, errors]).toMatchObject([{ created: times.length }, []])
  for (const [index, [at]] of times.entries()) {
    const [found] = (await admin.get(`/contacts/persons?email=${email(index)}`)).body.data
    expect(found.custom_attributes.met_at).toBe(at)
  }
})
