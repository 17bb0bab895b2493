// Attributes of the types `number` and `url`, on every channel, and the migration that brings them.
import { beforeAll, describe, expect, it } from 'vitest'
import { migrate, migrations } from '../../db/migrate.ts'
import { openEmpty } from '../support/engine.ts'
import { given } from '../support/given.ts'
import { importing } from '../support/importing.ts'
import { useSharedServer } from '../support/using.ts'

const server = useSharedServer()
const { admin } = server
const make = given(admin)
const define = async (code: string, type: string, more: object = {}): Promise<void> => {
  const body = { code, name: code, type, entity_type: 'organizations', ...more }
  expect((await admin.post('/settings/attributes', body)).status).toBe(201)
}
const organization = async (custom_attributes: object) => make.organization({ custom_attributes } as object)

beforeAll(async () => {
  await define('headcount', 'number')
  await define('site', 'url')
  await define('serial', 'number', { is_unique: true })
})

describe('a number', () => {
  it.each([0, -3.75, 0.1, 51.507351, 0.0000001, 999_999_999_999_999, -999_999_999_999_999])(
    'is stored: %s',
    async (value) => {
      const { id } = await organization({ headcount: value })
      expect((await admin.get(`/contacts/organizations/${id}`)).body.data.custom_attributes.headcount).toBe(value)
      const { body } = await admin.get(
        `/contacts/organizations?custom_attributes[headcount]=${value.toFixed(8).replace(/\.?0+$/, '')}`,
      )
      expect(body.data.map((each: { id: number }) => each.id)).toEqual([id])
    },
  )

  it('that is a negative zero is zero', async () => {
    const text = '{"name":"Zero","custom_attributes":{"headcount":-0.0}}'
    const { body } = await admin.post('/contacts/organizations', JSON.parse(text))
    expect(Object.is(body.data.custom_attributes.headcount, 0)).toBe(true)
  })

  it.each(['many', '12 heads', [1], 1e15, -1e15, 1e300])('is refused: %j', async (value) => {
    const { status, body } = await admin.post('/contacts/organizations', {
      name: 'Refused',
      custom_attributes: { headcount: value },
    })
    expect([status, Object.keys(body.errors)]).toEqual([422, ['custom_attributes.headcount']])
  })

  it('is compared and sorted as a number', async () => {
    for (const headcount of [900, 1000, 9.5]) await organization({ headcount, site: 'https://sorted.example.com' })
    const listed = async (query: string) =>
      (
        await admin.get(`/contacts/organizations?custom_attributes[site]=https://sorted.example.com&${query}`)
      ).body.data.map((each: { custom_attributes: { headcount: number } }) => each.custom_attributes.headcount)
    expect(await listed('sort=-custom_attributes.headcount')).toEqual([1000, 900, 9.5])
    expect(await listed('custom_attributes[headcount][gt]=9.5&sort=custom_attributes.headcount')).toEqual([900, 1000])
    const { status, body } = await admin.get('/contacts/organizations?custom_attributes[headcount]=lots')
    expect([status, JSON.stringify(body.errors)]).toEqual([422, expect.stringContaining('numbers')])
  })

  it('that is unique is unique however it is written', async () => {
    await organization({ serial: 1.5 })
    const { status } = await admin.post('/contacts/organizations', { name: 'Twin', custom_attributes: { serial: 1.5 } })
    expect(status).toBe(409)
  })

  it('may be sent as a text', async () => {
    const { custom_attributes } = await organization({ headcount: ' 12.5 ' })
    expect(custom_attributes).toMatchObject({ headcount: 12.5 })
  })
})

describe('an address of the web', () => {
  it.each(['https://example.com', 'HTTP://Example.com/A?b=c#d', `https://example.com/${'x'.repeat(2000)}`])(
    'is stored: %s',
    async (site) => {
      const { id } = await organization({ site })
      expect((await admin.get(`/contacts/organizations/${id}`)).body.data.custom_attributes.site).toBe(site)
    },
  )

  it.each(['example.com', 'javascript:alert(1)', 'ftp://example.com', 'https://', 'http://a b', 'https://[', 5])(
    'is refused: %j',
    async (site) => {
      const { status, body } = await admin.post('/contacts/organizations', { name: 'No', custom_attributes: { site } })
      expect([status, Object.keys(body.errors)]).toEqual([422, ['custom_attributes.site']])
    },
  )
})

it('are exported and imported', async () => {
  const file = 'name,headcount,site\nImported,"12.5",https://imported.example.com\nWrong,twelve,imported\n'
  const { errors } = await importing(admin).validate('organizations', file)
  expect(errors.map(({ row, column }: { row: number; column: string }) => [row, column])).toEqual([
    [3, 'headcount'],
    [3, 'site'],
  ])
  await importing(admin).run('organizations', file.split('\n').slice(0, 2).join('\n'))
  const { body } = await admin.get('/contacts/organizations?name=Imported')
  expect(body.data[0].custom_attributes).toMatchObject({ headcount: 12.5, site: 'https://imported.example.com' })
  const { text } = await admin.get('/contacts/organizations/export?format=csv&name=Imported')
  expect(text).toContain('12.5')
  expect(text).toContain('https://imported.example.com')
})

it('the migration keeps the attributes, their options and the index', async () => {
  const store = await openEmpty()
  const step = migrations.findIndex(({ name }) => name.endsWith('_number_and_url_attributes'))
  await migrate(store, migrations.slice(0, step))
  const now = '2026-01-01T00:00:00.000Z'
  const row = {
    code: 'kind',
    name: 'Kind',
    name_key: 'kind',
    entity_type: 'leads',
    sort_order: 1,
    created_at: now,
    updated_at: now,
  } as const
  const insert = (more: object) =>
    store.db
      .insertInto('attributes')
      .values({ ...row, ...more } as never)
      .execute()
  await insert({ type: 'select' })
  const { id } = await store.db.selectFrom('attributes').select('id').executeTakeFirstOrThrow()
  await store.db
    .insertInto('attribute_options')
    .values({ attribute_id: id, name: 'A', name_key: 'a', sort_order: 1 })
    .execute()
  await migrate(store)
  expect(await store.db.selectFrom('attributes').select(['id', 'type']).execute()).toEqual([{ id, type: 'select' }])
  expect(await store.db.selectFrom('attribute_options').select('attribute_id').execute()).toEqual([
    { attribute_id: id },
  ])
  await insert({ code: 'size', type: 'number' })
  await expect(insert({ code: 'shape', type: 'round' })).rejects.toThrow(/constraint/i)
  await store.close()
})
