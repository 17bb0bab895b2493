// Files for imports: CSV files and workbooks, their headers, and the values of cells.
import { Readable } from 'node:stream'
import { describe, expect, it, vi } from 'vitest'
import { stops } from '../../src/resources/data-transfer/errors.ts'
import { readRows } from '../../src/resources/data-transfer/read-file/read-rows.ts'
import { file, form } from '../support/form.ts'
import { csvOf, importing, path } from '../support/importing.ts'
import { countTurns } from '../support/turns.ts'
import { useServer } from '../support/using.ts'
import { workbook, zip } from '../support/workbook.ts'

const server = useServer({}, async (server) => {
  const make = (body: object) => server.admin.post('/settings/attributes', body)
  await make({ code: 'vat', name: 'VAT', type: 'text', entity_type: 'organizations', is_unique: true })
  await make({ code: 'since', name: 'Since', type: 'date', entity_type: 'organizations' })
  await make({
    code: 'size',
    name: 'Size',
    type: 'select',
    entity_type: 'organizations',
    options: [{ name: 'Small' }, { name: 'Large' }],
  })
  await make({
    code: 'areas',
    name: 'Areas',
    type: 'multiselect',
    entity_type: 'organizations',
    options: [{ name: 'North' }, { name: 'South' }],
  })
  await make({ code: 'turnover', name: 'Turnover', type: 'price', entity_type: 'organizations' })
  await make({ code: 'partner', name: 'Partner', type: 'boolean', entity_type: 'organizations' })
  await make({ code: 'billing', name: 'Billing', type: 'address', entity_type: 'organizations' })
  await make({ code: 'lines', name: 'Lines', type: 'phone', entity_type: 'organizations' })
})

const using = () => importing(server.admin)
const organizations = async () => (await server.admin.get('/contacts/organizations?sort=id')).body.data

describe('a header', () => {
  const faultsOf = async (type: string, header: string, options = {}) =>
    (await using().validate(type, `${header}\na,b,c\n`, options)).errors.map(
      (error: { message: string }) => error.message,
    )

  it('is refused as a whole for columns that are unknown, nameless or there twice, with a sentence each', async () => {
    const { state, errors, processed_rows_count } = await using().validate(
      'organizations',
      'name,,nmae,user_id,user_id\nAcme,,,,\n',
    )
    expect([state, processed_rows_count]).toEqual(['invalid', 0])
    expect(errors).toEqual([
      { row: 1, column: null, code: 'invalid_header', message: 'Column 2 has no name.' },
      { row: 1, column: 'nmae', code: 'invalid_header', message: 'Unknown column nmae. Did you mean `name`?' },
      { row: 1, column: 'user_id', code: 'invalid_header', message: 'The column user_id occurs twice.' },
    ])
  })

  it('is not looked through when it has more columns than any table, and told of by a hundred sentences at most', async () => {
    const columns = (count: number) => Array.from({ length: count }, (_, n) => `column_${n}`).join(',')
    const wide = await using().validate('organizations', `${columns(20_000)}\n1\n`)
    expect([wide.state, wide.errors]).toEqual([
      'invalid',
      [{ row: 1, column: null, code: 'unreadable', message: 'A file may have at most 1000 columns.' }],
    ])
    const { errors, errors_count } = await using().validate('organizations', `${columns(1000)}\n1\n`)
    expect([errors_count, errors.at(-1).message]).toEqual([
      100,
      'Unknown column column_99. Map it to a field, or to null to leave it out.',
    ])
    const [long] = await faultsOf('organizations', `name,${'x'.repeat(70_000)}`)
    expect(long).toBe(`Unknown column ${'x'.repeat(100)}…. Map it to a field, or to null to leave it out.`)
  })

  it('must have the column that its records are found by', async () => {
    expect(await faultsOf('persons', 'job_title,user_id')).toEqual([
      'The column emails or contact_numbers or name is missing.',
    ])
    expect(await faultsOf('persons', 'name', { action: 'delete' })).toEqual(['The column emails is missing.'])
    expect(await faultsOf('organizations', 'user_id')).toEqual(['The column name is missing.'])
    expect(await faultsOf('products', 'name,price')).toEqual(['The column sku is missing.'])
    expect(await faultsOf('leads', 'id,lead_value')).toEqual(['The column title is missing.'])
    expect(await faultsOf('leads', 'title', { action: 'delete' })).toEqual(['The column id is missing.'])
  })
})

describe('separated values', () => {
  it('are read with a byte order mark, quotes, line breaks in cells, and another separator', async () => {
    const text = '\ufeffname;address.city\r\n"Acme ""North""; Ltd";"New\nYork"\r\n\r\n5" Pipes;Berlin'
    const { state, summary } = await using().run('organizations', text, { field_separator: ';' })
    expect([state, summary.created]).toEqual(['completed', 2])
    expect((await organizations()).map(({ name, address }: any) => [name, address.city])).toEqual([
      ['Acme "North"; Ltd', 'New\nYork'],
      ['5" Pipes', 'Berlin'],
    ])
  })

  it('may be separated by tabs, whether JSON or a form says so', async () => {
    const { state, summary } = await using().run('organizations', 'name\taddress.city\nAcme, Ltd\tYork', {
      field_separator: '\t',
    })
    expect([state, summary.created]).toEqual(['completed', 1])
    expect((await organizations()).map(({ name, address }: any) => [name, address.city])).toEqual([
      ['Acme, Ltd', 'York'],
    ])
    const about = { type: 'organizations', action: 'append', validation_strategy: 'skip-errors', field_separator: '\t' }
    const sent = await form({ ...about, file: file('table.csv', 'name\n') })
    const { body } = await server.admin.post(path, sent.body, { headers: sent.headers })
    expect(body.data.field_separator).toBe('\t')
  })

  it('tell of each row that is too short or too long, by its number in a spreadsheet', async () => {
    const { state, errors } = await using().validate('organizations', 'name,user_id\nAcme,1\n\nShort\nLong,1,2\n')
    expect(state).toBe('validated')
    expect(errors).toEqual([
      { row: 4, column: null, code: 'validation_failed', message: 'The row has 1 cells, the header 2.' },
      { row: 5, column: null, code: 'validation_failed', message: 'The row has 3 cells, the header 2.' },
    ])
  })

  it('are read a few KiB at a time, with turns for others between them', async () => {
    const turns = countTurns()
    const text = `name,user_id\n${'a\n'.repeat(50_000)}`
    const { rows } = await read(text)
    turns.stop()
    expect(rows).toHaveLength(50_001)
    expect(turns.count).toBeGreaterThanOrEqual(Math.floor(text.length / 4096))
  })

  it('with rows of another length, or none, cost no error each', async () => {
    const capture = vi.spyOn(Error, 'captureStackTrace')
    const { rows, thrown } = await read(
      `name,user_id\n${'\n'.repeat(5000)}${'a\n'.repeat(5000)}${'a,b,c\n'.repeat(5000)}`,
    )
    const errors = capture.mock.calls.length
    capture.mockRestore()
    expect([thrown, rows.length, rows[1], rows.at(-1)]).toEqual([
      undefined,
      10_001,
      { row: 5002, cells: ['a'] },
      { row: 15_001, cells: ['a', 'b', 'c'] },
    ])
    expect(errors).toBeLessThan(10)
  })

  it.each([
    ['empty', '\n'],
    ['blank', ',\r\n'],
  ])('are given up when they have more %s lines than a table can have', async (_what, line) => {
    const few = await read(`name,user_id\n${line.repeat(10_000)}a,b`)
    expect([few.thrown, few.rows.at(-1)]).toEqual([undefined, { row: 10_002, cells: ['a', 'b'] }])
    const { thrown } = await read(`name,user_id\n${line.repeat(200_000)}`)
    expect(stops(thrown, 'file')).toBe(true)
    expect((thrown as Error).message).toBe('A file may have at most 200000 lines, empty ones included.')
  })

  it.each([
    ['text that is not UTF-8', Buffer.from([0x6e, 0x61, 0x6d, 0x65, 0x0a, 0xe9, 0x0a]).toString('latin1'), 'latin1'],
    ['an open quotation mark', 'name\n"Acme\nBeta\n', 'utf8'],
    ['no rows', 'name\n', 'utf8'],
    ['blank rows only', 'name,user_id\n,\n,\n', 'utf8'],
  ])('are refused for %s', async (_what, text, encoding) => {
    const sent = Buffer.from(text, encoding as BufferEncoding)
    const { id } = await using().record('organizations', 'name\nA\n')
    await server.store.db
      .updateTable('imports')
      .set({ file_id: await stored(sent) })
      .where('id', '=', id)
      .execute()
    const { state, errors } = await using().post(id, 'validate')
    expect(state).toBe('invalid')
    expect(errors).toHaveLength(1)
    expect(errors[0].code).toBe('unreadable')
  })
})

/** Returns the rows of a CSV text, and the error that ended reading. */
async function read(text: string) {
  const bytes = Buffer.from(text)
  const source = { size: bytes.length, read: () => Readable.from([bytes]) }
  const rows: object[] = []
  try {
    const about = { contentType: 'text/csv', separator: ',', encoding: 'utf-8' }
    for await (const row of readRows(source as never, about)) rows.push(row)
  } catch (thrown) {
    return { rows, thrown }
  }
  return { rows, thrown: undefined }
}

/** Stores bytes as a file with the type CSV. */
async function stored(bytes: Buffer): Promise<number> {
  const { services } = server.app
  const upload = await services.files.receive(Readable.from([bytes]), 'table.csv')
  await services.files.keep(upload)
  const { id } = await server.store.db
    .insertInto('files')
    .values({
      name: 'table.csv',
      size: bytes.length,
      content_type: 'text/csv',
      sha256: upload.sha256,
      user_id: 1,
      owner_type: null,
      owner_id: null,
      created_at: '2026-03-01T09:30:00.000Z',
    })
    .returning('id')
    .executeTakeFirstOrThrow()
  return id
}

describe('workbooks', () => {
  it('say the same as separated values: texts, numbers, dates, flags', async () => {
    const table = workbook([
      ['name', 'turnover', 'since', 'partner', 'address.postcode', 'vat'],
      ['Acme & Co', 1250.5, new Date('2020-02-29T00:00:00Z'), true, 10115, null],
      ['Beta', 0.1 + 0.2, null, false, null, 'DE 1'],
    ])
    const done = await using().run('organizations', table)
    expect(done).toMatchObject({ state: 'completed', errors: [], summary: { created: 2 } })
    const [acme, beta] = await organizations()
    expect(acme).toMatchObject({ name: 'Acme & Co', address: { postcode: '10115' } })
    expect(acme.custom_attributes).toMatchObject({ turnover: 1250.5, since: '2020-02-29', partner: true, vat: null })
    expect(beta.custom_attributes).toMatchObject({ turnover: 0.3, vat: 'DE 1', partner: false })
  })

  it('are refused when they would become too large, by their content or by their declared sizes', async () => {
    const sheet = `<worksheet>${'<row/>'.repeat(5_000_000)}</worksheet>`
    const parts = { '[Content_Types].xml': 'spreadsheetml.sheet.main', 'xl/workbook.xml': '<workbook/>' }
    for (const bomb of [
      zip({ ...parts, 'xl/worksheets/sheet1.xml': sheet }),
      zip({ ...parts, 'xl/worksheets/sheet1.xml': '<a/>' }, { 'xl/worksheets/sheet1.xml': 3_000_000_000 }),
    ]) {
      const { state, errors } = await bombed(bomb)
      expect(state).toBe('invalid')
      expect(errors[0].message).toMatch(/^The workbook would become too large/)
    }
  })

  it('are refused when a password protects them, or their directory hides a part', async () => {
    const locked = zip({ 'xl/workbook.xml': '<workbook/>' })
    locked.writeUInt16LE(1, 6)
    // The library reads the other count of parts.
    const hiding = zip({ 'xl/workbook.xml': '<workbook/>', 'xl/media/image1.xml': 'a'.repeat(20 * 1024 * 1024) })
    hiding.writeUInt16LE(1, hiding.length - 12)
    const messages = []
    for (const book of [locked, hiding]) messages.push((await bombed(book)).errors[0].message)
    expect(messages).toEqual([
      'The workbook is protected by a password.',
      'The workbook would become too large when it is unpacked.',
    ])
  })

  it('are refused when they have thousands of parts, or are cut off', async () => {
    const parts = Object.fromEntries(Array.from({ length: 3000 }, (_, index) => [`xl/${index}.xml`, '<a/>']))
    const many = zip(parts)
    const messages = []
    for (const book of [many, many.subarray(0, -100), many.subarray(0, 10), Buffer.from('PK')])
      messages.push((await bombed(book)).errors[0].message)
    const unreadable = 'The file is not a workbook that can be read.'
    expect(messages).toEqual(['The workbook consists of more than 1000 parts.', unreadable, unreadable, unreadable])
  })

  it('are refused when a cell stands where no sheet reaches, and the server goes on', async () => {
    const far = workbook([['name'], ['Acme']], '<row r="3000000000"><c r="A3000000000"><v>1</v></c></row>')
    const { state, errors } = await bombed(far)
    expect(state).toBe('invalid')
    expect(errors[0].message).toMatch(/too much memory|cannot be read|can be read/)
    expect((await server.admin.get('/account')).status).toBe(200)
  })

  it('are refused when they are not what they seem', async () => {
    const { state, errors } = await bombed(zip({ 'xl/workbook.xml': 'no xml at all' }))
    expect([state, errors[0].message]).toEqual(['invalid', 'The file is not a workbook that can be read.'])
  })

  it('whose parts have names of thousands of characters are refused, and not the defect of the server', async () => {
    const parts = Object.fromEntries(
      ['a', 'b', 'c'].map((letter) => [`xl/worksheets/${letter.repeat(60_000)}.xml`, '<a/>']),
    )
    const { state, errors } = await bombed(zip({ 'xl/workbook.xml': '<workbook/>', ...parts }))
    expect([state, errors[0].message]).toEqual(['invalid', 'The file is not a workbook that can be read.'])
  })

  /** Validates the bytes as a workbook, regardless of the detected type. */
  async function bombed(bytes: Buffer) {
    const { id } = await using().record('organizations', 'name\nA\n')
    const file = await stored(bytes)
    await server.store.db
      .updateTable('files')
      .set({ content_type: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet' })
      .where('id', '=', file)
      .execute()
    await server.store.db.updateTable('imports').set({ file_id: file }).where('id', '=', id).execute()
    return using().post(id, 'validate')
  }
})

describe('a cell', () => {
  it('is read as its column wants it', async () => {
    const table = csvOf([
      [
        'name',
        'address.city',
        'vat',
        'since',
        'size',
        'areas',
        'turnover',
        'partner',
        'billing.country',
        'lines',
        'tags',
      ],
      [
        'Acme',
        'Berlin',
        "'=1",
        '2020-02-29',
        'large',
        'South|north',
        '12.50',
        'true',
        'de',
        '+49 30 1234:desk|0301',
        'VIP|Key',
      ],
    ])
    await using().run('organizations', table)
    const [{ custom_attributes: own, ...acme }] = await organizations()
    expect(acme).toMatchObject({ address: { city: 'Berlin' }, user_id: 1 })
    expect(acme.tags.map(({ name }: any) => name)).toEqual(['Key', 'VIP'])
    expect(own).toMatchObject({ vat: '=1', since: '2020-02-29', turnover: 12.5, partner: true })
    expect(own.billing).toMatchObject({ country: 'DE' })
    expect(own.lines).toEqual([
      { value: '+49 30 1234', label: 'desk' },
      { value: '0301', label: 'work' },
    ])
    const { body } = await server.admin.get(
      '/settings/attributes?entity_type=organizations&is_user_defined=true&per_page=50',
    )
    const optionId = (code: string, name: string) =>
      body.data.find((each: any) => each.code === code).options.find((each: any) => each.name === name).id
    expect([own.size, own.areas]).toEqual([
      optionId('size', 'Large'),
      [optionId('areas', 'South'), optionId('areas', 'North')],
    ])
  })

  it('that is empty leaves the field as it is; NULL clears it', async () => {
    await using().run(
      'organizations',
      csvOf([
        ['name', 'vat', 'address.city', 'tags', 'lines'],
        ['Acme', 'DE 1', 'Berlin', 'VIP', '0301'],
      ]),
    )
    await using().run(
      'organizations',
      csvOf([
        ['name', 'vat', 'address.city', 'tags', 'lines'],
        ['ACME', '', '', '', ''],
      ]),
    )
    const [same] = await organizations()
    expect(same).toMatchObject({
      name: 'ACME',
      address: { city: 'Berlin' },
      custom_attributes: { vat: 'DE 1' },
      tags: [{ name: 'VIP' }],
    })
    await using().run(
      'organizations',
      csvOf([
        ['name', 'vat', 'address.city', 'tags', 'lines'],
        ['Acme', 'NULL', 'NULL', 'NULL', 'NULL'],
      ]),
    )
    const [cleared] = await organizations()
    expect(cleared).toMatchObject({ address: null, tags: [], custom_attributes: { vat: null, lines: null } })
  })

  it('that is wrong is reported at its column with the sentence of the API, and all errors of a row at once', async () => {
    const { errors, invalid_rows_count, errors_count } = await using().validate(
      'organizations',
      csvOf([
        ['name', 'address.country', 'since', 'turnover', 'size', 'user_id', 'lines'],
        ['Good', '', '', '', '', '', ''],
        ['Bad', 'Atlantis', 'soon', '1.23456', 'huge', 'me', '[1'],
      ]),
    )
    expect([invalid_rows_count, errors_count]).toEqual([1, 6])
    const at = (column: string) => errors.find((error: any) => error.column === column)?.message
    expect(at('address.country')).toBe('Must be an ISO 3166-1 country code of two letters.')
    expect(at('user_id')).toBe('Must be a whole number or null.')
    expect(at('lines')).toBe('Must be a list in JSON, or its entries with | between them.')
    // Custom attributes are checked together with the other rules of the record.
    const own = await using().validate(
      'organizations',
      csvOf([
        ['name', 'since', 'turnover', 'size'],
        ['Good', '', '', ''],
        ['Bad', 'soon', '1.23456', 'huge'],
      ]),
    )
    expect([...new Set(own.errors.map(({ column }: any) => column))].sort()).toEqual(['since', 'size', 'turnover'])
  })
})

describe('an export', () => {
  it('can be imported as it is, and changes nothing then', async () => {
    const add = async (at: string, sent: object): Promise<number> => {
      const { status, body, text } = await server.admin.post(at, sent)
      if (status !== 201) throw new Error(text)
      return body.data.id
    }
    const tag = await add('/tags', { name: 'a|b' })
    const organization = await add('/contacts/organizations', {
      name: '=Acme',
      address: { city: 'Berlin' },
      tag_ids: [tag],
      custom_attributes: { vat: '@1', lines: [{ value: '+49 30', label: 'a|b' }], billing: { city: 'Bonn' } },
    })
    const person = await add('/contacts/persons', {
      name: '-Ada',
      emails: [
        { value: 'ada@example.com', label: 'work' },
        { value: 'a@b.example', label: 'x:y' },
      ],
      contact_numbers: [{ value: '+44 20 1', label: 'mobile' }],
      organization_id: organization,
      tag_ids: [tag],
    })
    const product = await add('/products', { sku: 'p1', name: 'Seat', price: 4821, description: '=1\n+2' })
    const lead = await add('/leads', {
      title: 'Seats',
      lead_value: 4821,
      person_id: person,
      products: [{ product_id: product, quantity: 2 }],
      expected_close_date: '2026-03-05',
    })
    for (const [type, at, id] of [
      ['organizations', '/contacts/organizations', organization],
      ['persons', '/contacts/persons', person],
      ['products', '/products', product],
      ['leads', '/leads', lead],
    ] as const) {
      const { text } = await server.admin.get(`${at}/export?format=csv`)
      const before = (await server.admin.get(`${at}/${id}`)).body.data
      const done = await using().run(type, text)
      expect(done).toMatchObject({ state: 'completed', errors: [], summary: { created: 0, updated: 1, skipped: 0 } })
      expect((await server.admin.get(`${at}/${id}`)).body.data).toEqual(before)
    }
  })
})
