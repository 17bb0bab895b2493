// A record type has at most 300 custom attributes, and a record can have a value for each.
import { expect, it } from 'vitest'
import { startServer } from '../support/app.ts'

it('takes 300 attributes of a record type and no more', { timeout: 60_000 }, async () => {
  const server = await startServer()
  const add = (index: number) =>
    server.admin.post('/settings/attributes', {
      entity_type: 'leads',
      code: `field_${index}`,
      name: `Field ${index}`,
      type: 'text',
    })
  for (let index = 0; index < 300; index++) expect((await add(index)).status).toBe(201)
  const refused = await add(300)
  expect([refused.status, refused.body.errors.entity_type]).toEqual([
    422,
    ['Must not have more than 300 attributes of its own.'],
  ])
  const custom_attributes = Object.fromEntries(
    Array.from({ length: 300 }, (_each, index) => [`field_${index}`, `${index}`]),
  )
  const lead = await server.admin.post('/leads', { title: 'Full', lead_value: 1, custom_attributes })
  expect(lead.body.data?.custom_attributes, lead.text).toEqual(custom_attributes)
  const filter = Object.entries(custom_attributes)
    .slice(0, 10)
    .map(([code, text]) => `custom_attributes[${code}]=${text}`)
  expect((await server.admin.get(`/leads?${filter.join('&')}`)).body.data).toHaveLength(1)
  await server.close()
})
