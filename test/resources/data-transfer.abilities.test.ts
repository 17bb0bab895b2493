// A token can start only imports whose changes its abilities allow, because rows are written later
// with all rights of the user.
import { expect, it } from 'vitest'
import { csvOf, importing, path } from '../support/importing.ts'
import { useServer } from '../support/using.ts'

const server = useServer()

const tokenWith = (...abilities: string[]) => server.as(1, ['data-transfer:*', 'files:*', ...abilities])
const names = async (at: string) =>
  (await server.admin.get(`${at}?per_page=100`)).body.data.map(({ name }: { name: string }) => name)

it.each([
  [
    'leads',
    csvOf([
      ['title', 'lead_value'],
      ['Seats', 1],
    ]),
    'leads:write',
    [],
  ],
  [
    'persons',
    csvOf([
      ['name', 'emails'],
      ['Ada', 'ada@example.com'],
    ]),
    'persons:write',
    [],
  ],
  // The import creates missing records with this name.
  [
    'leads',
    csvOf([
      ['title', 'lead_value', ' tags '],
      ['Seats', 1, 'Taken'],
    ]),
    'settings:write',
    ['leads:write'],
  ],
  [
    'products',
    csvOf([
      ['sku', 'name', 'price', 'tags'],
      ['S-1', 'Seat', 1, 'Taken'],
    ]),
    'settings:write',
    ['products:write'],
  ],
  [
    'persons',
    csvOf([
      ['name', 'emails', 'organization_name'],
      ['Ada', 'ada@example.com', 'Taken Ltd'],
    ]),
    'organizations:write',
    ['persons:write'],
  ],
])('an import of %s %j needs %s', async (type, table, required, abilities) => {
  const caller = await tokenWith(...abilities)
  const { id } = await importing(caller).record(type, table)
  const refused = await caller.post(`${path}/${id}/validate`)
  expect([refused.status, refused.body.code, refused.body.required]).toEqual([403, 'forbidden', required])

  // A token with fewer abilities cannot start an import that another token validated.
  expect((await importing(server.admin).post(id, 'validate')).state).toBe('validated')
  const start = await caller.post(`${path}/${id}/start`)
  expect([start.status, start.body.required]).toEqual([403, required])
  expect(await names('/tags')).not.toContain('Taken')
  expect(await names('/contacts/organizations')).not.toContain('Taken Ltd')

  const able = await tokenWith(...abilities, required)
  expect((await importing(able).post(id, 'start')).state).toBe('completed')
})

it('asks for no more than it takes: a deletion makes nothing', async () => {
  const { id } = await importing(server.admin).run(
    'persons',
    csvOf([
      ['name', 'emails'],
      ['Ada', 'ada@example.com'],
    ]),
  )
  expect(id).toBeGreaterThan(0)
  const caller = await tokenWith('persons:write')
  const table = csvOf([
    ['emails', 'organization_name', 'tags'],
    ['ada@example.com', 'Taken Ltd', 'Taken'],
  ])
  expect(await importing(caller).run('persons', table, { action: 'delete' })).toMatchObject({
    state: 'completed',
    summary: { deleted: 1 },
  })
})

it('tells of a file that cannot be read by its validation', async () => {
  const caller = await tokenWith('leads:write')
  expect((await importing(caller).validate('leads', '"')).state).toBe('invalid')
})
