// Errors of import rows: all errors of a row are reported together, and rows can be imported
// without their invalid cells.
import { describe, expect, it } from 'vitest'
import { csvOf, importing, path } from '../support/importing.ts'
import { useServer } from '../support/using.ts'

const server = useServer({}, async (server) => {
  const make = (body: object) => server.admin.post('/settings/attributes', body)
  await make({ code: 'vat', name: 'VAT', type: 'text', entity_type: 'organizations', is_unique: true })
  await make({ code: 'since', name: 'Since', type: 'date', entity_type: 'organizations' })
  await make({ code: 'size', name: 'Size', type: 'select', entity_type: 'organizations', options: [{ name: 'Small' }] })
  await make({ code: 'area', name: 'Area', type: 'text', entity_type: 'organizations', is_required: true })
})

const using = () => importing(server.admin)
const omitting = { omit_invalid_cells: true }
const list = async (at: string) => (await server.admin.get(`${at}?sort=id`)).body.data
const columnsOf = (errors: any[]) => errors.map(({ row, column, code }) => [row, column, code])

describe('the errors of a row', () => {
  it('are told all at once: those of cells, of the schema, of references, of persons and of tags', async () => {
    const { errors } = await using().validate(
      'leads',
      csvOf([
        ['title', 'lead_value', 'user_id', 'lead_source_id', 'person_email', 'product', 'tags'],
        ['Seats', 'much', 99, 98, 'nobody@example.com', 'two', 'x'.repeat(300)],
      ]),
    )
    expect(columnsOf(errors).sort()).toEqual(
      ['lead_source_id', 'lead_value', 'person_email', 'product', 'tags', 'user_id'].map((column) => [
        2,
        column,
        'validation_failed',
      ]),
    )
  })

  it('include those of a missing field and of an attribute, beside a value that is taken', async () => {
    await server.admin.post('/contacts/organizations', {
      name: 'First',
      custom_attributes: { vat: '1', area: 'a' },
    })
    const { errors } = await using().validate(
      'organizations',
      csvOf([
        ['name', 'vat', 'user_id', 'size', 'since'],
        ['Second', '1', 99, 'huge', 'soon'],
      ]),
    )
    expect([...new Set(errors.map(({ column }: any) => column ?? 'none'))].sort()).toEqual([
      'none',
      'since',
      'size',
      'user_id',
      'vat',
    ])
    expect(errors.find(({ column }: any) => column === null).message).toMatch(/area: The field is required/)
    // The rows created no tag and no organization.
    expect(await list('/contacts/organizations')).toHaveLength(1)
  })

  it('are those of an update for a record that exists, and of a creation for another', async () => {
    await server.admin.post('/products', { sku: 'old', name: 'Old', price: 1 })
    const { errors } = await using().validate('products', 'sku,price\nold,cheap\nnew,cheap\n')
    expect(errors.map(({ row, column, message }: any) => [row, column, message])).toEqual([
      [2, 'price', expect.any(String)],
      [3, 'price', expect.any(String)],
      [3, null, 'name: The field is required.'],
    ])
  })

  it('create nothing on the way', async () => {
    const { data } = (await server.admin.get('/settings/attributes?code=area')).body
    await server.admin.put(`/settings/attributes/${data[0].id}`, { is_required: false })
    const table = 'name,emails,organization_name,tags,user_id\nAda,ada@example.com,Acme,VIP,me\n'
    const { errors } = await using().validate('persons', table)
    expect(columnsOf(errors)).toEqual([[2, 'user_id', 'validation_failed']])
    server.events()
    await using().run('persons', `${table}Eve,eve@example.com,,,\n`)
    expect([await list('/tags'), await list('/contacts/organizations')]).toEqual([[], []])
    expect(server.events().filter((name) => /tag|organization/.test(name))).toEqual([])
  })
})

describe('omit_invalid_cells', () => {
  const table = csvOf([
    ['name', 'area', 'since', 'user_id', 'address.country'],
    ['Acme', 'a', 'soon', 99, 'DE'],
    ['Beta', 'b', '2016-03-01', '', 'Atlantis'],
    ['Gamma', 'c', '2017-03-01', '', 'FR'],
    ['Delta', '', 'late', '', ''],
    ['x'.repeat(256), 'e', 'never', '', ''],
  ])

  it('imports a row without its invalid cells, and reports each of them', async () => {
    const { id, state, ...found } = await using().validate('organizations', table, omitting)
    expect(state).toBe('validated')
    expect(found).toMatchObject({ invalid_rows_count: 2, omitted_cells_count: 3, errors_count: 4 })
    const done = await using().post(id, 'start')
    expect(done).toMatchObject({
      state: 'completed',
      summary: { created: 3, skipped: 2 },
      invalid_rows_count: 2,
      omitted_cells_count: 3,
      errors_count: 4,
    })
    expect(columnsOf(done.errors)).toEqual([
      [2, 'since', 'cell_omitted'],
      [2, 'user_id', 'cell_omitted'],
      [3, 'address.country', 'cell_omitted'],
      [5, 'since', 'validation_failed'],
      [5, 'area', 'validation_failed'],
      [6, 'name', 'validation_failed'],
      [6, 'since', 'validation_failed'],
    ])
    const stored = await list('/contacts/organizations')
    expect(
      stored.map(({ name, address, custom_attributes: own }: any) => [name, address?.country ?? null, own.since]),
    ).toEqual([
      ['Acme', 'DE', null],
      ['Beta', null, '2016-03-01'],
      ['Gamma', 'FR', '2017-03-01'],
    ])
    const report = await server.admin.get(`${path}/${id}/error-report`)
    expect(report.text.split('\r\n').map((line) => line.slice(0, 5))).toEqual(['name,', 'Delta', 'xxxxx', ''])
  })

  it('is off by default: the row is refused', async () => {
    const { state, invalid_rows_count, omitted_cells_count } = await using().validate('organizations', table)
    expect([state, invalid_rows_count, omitted_cells_count]).toEqual(['validated', 4, 0])
  })

  it('does not count as an error that stops an import', async () => {
    const rows = csvOf([
      ['name', 'area', 'since'],
      ['Acme', 'a', 'soon'],
    ])
    const options = { ...omitting, validation_strategy: 'stop-on-errors' }
    const done = await using().run('organizations', rows, options)
    expect(done).toMatchObject({ state: 'completed', errors_count: 0, omitted_cells_count: 1, error_file_path: null })
  })

  it('refuses a row whose key is invalid, whose unique value is taken, or whose required cell is invalid', async () => {
    await server.admin.post('/contacts/organizations', { name: 'First', custom_attributes: { vat: '1', area: 'a' } })
    const taken = await using().validate('organizations', 'name,area,vat,since\nSecond,b,1,soon\n', omitting)
    expect([taken.state, columnsOf(taken.errors)]).toEqual([
      'invalid',
      [
        [2, 'since', 'validation_failed'],
        [2, 'vat', 'validation_failed'],
      ],
    ])
    const persons = await using().validate('persons', 'name,emails,user_id\nAda,ada@,me\n', omitting)
    expect([persons.state, columnsOf(persons.errors).map(([, column]) => column)]).toEqual([
      'invalid',
      ['emails', 'user_id'],
    ])
    const leads = await using().validate('leads', `title,lead_value\n${'x'.repeat(300)},5\n`, omitting)
    expect([leads.state, leads.errors_count, leads.omitted_cells_count]).toEqual(['invalid', 1, 0])
    const products = await using().validate('products', `sku,name,price\nnew,${'x'.repeat(300)},1\n`, omitting)
    expect([products.state, columnsOf(products.errors)]).toEqual(['invalid', [[2, 'name', 'validation_failed']]])
  })

  it('keeps the value of a record that exists', async () => {
    await server.admin.post('/products', { sku: 'old', name: 'Old', price: 5 })
    const done = await using().run('products', 'sku,name,price\nold,Older,cheap\n', omitting)
    expect(done).toMatchObject({ summary: { updated: 1, skipped: 0 }, omitted_cells_count: 1 })
    expect((await list('/products'))[0]).toMatchObject({ name: 'Older', price: 5 })
  })

  it('finds that a stage without its pipeline is invalid as well', async () => {
    const done = await using().run(
      'leads',
      'title,lead_value,lead_pipeline_id,lead_pipeline_stage_id\nA,1,99,98\nB,1,1,98\n',
      omitting,
    )
    expect(done).toMatchObject({ summary: { created: 2, skipped: 0 } })
    expect(new Set(done.errors.map(({ code }: any) => code))).toEqual(new Set(['cell_omitted']))
  })

  it('is not for a deletion', async () => {
    await server.admin.post('/products', { sku: 'old', name: 'Old', price: 5 })
    const { errors } = await using().validate('products', 'sku,price\nold,cheap\ngone,cheap\n', {
      ...omitting,
      action: 'delete',
    })
    expect(columnsOf(errors)).toEqual([[3, 'sku', 'not_found']])
  })

  it('counts no cell of a row that runs again after a failure twice', async () => {
    const rows = Array.from({ length: 150 }, (_, n) => [`Company ${n}`, 'a', n % 50 === 0 ? 'soon' : ''])
    const { id } = await using().validate('organizations', csvOf([['name', 'area', 'since'], ...rows]), omitting)
    await using().post(id, 'start')
    // Restores the state of the import after its first batch.
    await server.store.db.deleteFrom('organizations').where('name', '>', 'Company 99').execute()
    await server.store.db
      .updateTable('imports')
      .set({ state: 'failed', processed_rows_count: 100 })
      .where('id', '=', id)
      .execute()
    await server.store.db.deleteFrom('import_batches').where('import_id', '=', id).where('number', '=', 2).execute()
    const done = await using().post(id, 'start')
    expect(done).toMatchObject({ state: 'completed', omitted_cells_count: 3, errors_count: 0, invalid_rows_count: 0 })
    expect(columnsOf(done.errors).map(([row]) => row)).toEqual([2, 52, 102])
  })
})
