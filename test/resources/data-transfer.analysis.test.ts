// Imports of files in other formats: the settings that the analysis of a file suggests, and the
// values that an import with these settings reads.
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import iconv from 'iconv-lite'
import { describe, expect, it } from 'vitest'
import { file, form } from '../support/form.ts'
import { importing, path } from '../support/importing.ts'
import { someone } from '../support/people.ts'
import { useServer } from '../support/using.ts'
import { workbook } from '../support/workbook.ts'

const server = useServer({}, async (server) => {
  const make = (body: object) => server.admin.post('/settings/attributes', { entity_type: 'organizations', ...body })
  await make({ code: 'since', name: 'Customer since', type: 'date' })
  await make({ code: 'seen_at', name: 'Last visit', type: 'datetime' })
  await make({ code: 'turnover', name: 'Annual turnover', type: 'price' })
  await make({ code: 'partner', name: 'Partner', type: 'boolean' })
  await make({ code: 'billing', name: 'Billing address', type: 'address' })
})

const using = () => importing(server.admin)
const organizations = async () => (await server.admin.get('/contacts/organizations?sort=id')).body.data

/** Creates an import of a file without settings. */
async function record(type: string, name: string, bytes: string | Uint8Array, options: object = {}) {
  const about = { type, action: 'append', validation_strategy: 'skip-errors', process_in_queue: 'false', ...options }
  const sent = await form({ ...about, file: file(name, bytes) })
  const { status, body, text } = await server.admin.post(path, sent.body, { headers: sent.headers })
  if (status !== 201) throw new Error(text)
  return body.data
}
const analysisOf = async (id: number) => {
  const { status, body, text } = await server.admin.get(`${path}/${id}/analysis`)
  if (status !== 200) throw new Error(text)
  return body.data
}
const analyze = async (type: string, text: string | Uint8Array, options: object = {}) =>
  analysisOf((await record(type, typeof text === 'string' ? 'table.csv' : 'table.xlsx', text, options)).id)

/** Saves the suggested settings, then validates and starts the import. */
async function confirmAndRun(id: number, changes: object = {}) {
  const { settings } = await analysisOf(id)
  const put = await server.admin.put(`${path}/${id}`, { ...settings, ...changes })
  if (put.status !== 200) throw new Error(put.text)
  const validated = await using().post(id, 'validate')
  return validated.state === 'validated' ? using().post(id, 'start') : validated
}

describe('the analysis of a large file', () => {
  it('reads the file once, also for calls at the same time, and follows changes of the settings', async () => {
    const lines = Array.from({ length: 2000 }, (_, row) => `Firm ${row},${row}`)
    const { id } = await record('organizations', 'once.csv', ['name,Annual turnover', ...lines].join('\n'))
    const { files } = server.app.services
    const find = files.find.bind(files)
    let reads = 0
    files.find = async (sha256) => {
      const source = await find(sha256)
      if (!source) return source
      const read = source.read.bind(source)
      return Object.assign(Object.create(source), {
        read: (from: number, to: number) => {
          reads++
          return read(from, to)
        },
      })
    }
    try {
      const [one, two] = await Promise.all([analysisOf(id), analysisOf(id)])
      const first = reads
      expect(first).toBeGreaterThan(0)
      expect([two, await analysisOf(id), reads]).toEqual([one, one, first])
      await server.admin.put(`${path}/${id}`, { encoding: 'windows-1252' })
      expect((await analysisOf(id)).settings.encoding).toBe('utf-8')
    } finally {
      files.find = find
    }
  })
})

const german = [
  'Firma;Straße;PLZ;Ort;Land;Customer since;Last visit;ANNUAL-TURNOVER;Partner;Bemerkung',
  'Müller & Söhne;"Hauptstraße 1; Hof";01067;Dresden;DE;31.12.2015;1.2.2024 14:30;1.234.567,50 €;ja;wichtig',
  'Grüne Gärten;Allee 2;10115;Berlin;DE;01.03.2016;;999,9;Nein;',
  '',
].join('\r\n')

describe('getImportAnalysis', () => {
  it('finds separator, encoding, dates, numbers and columns, and suggests settings that work', async () => {
    const { id } = await record('organizations', 'kunden.csv', iconv.encode(german, 'windows-1252'))
    const found = await analysisOf(id)
    expect(found).toMatchObject({
      format: 'csv',
      settings: { field_separator: ';', encoding: 'windows-1252', date_format: 'dmy', decimal_separator: ',' },
      warnings: ['The column Bemerkung is left out; it has 1 value.'],
    })
    expect(found.settings.mapping).toEqual({
      Firma: 'name',
      Straße: 'address.address',
      PLZ: 'address.postcode',
      Ort: 'address.city',
      Land: 'address.country',
      'Customer since': 'since',
      'Last visit': 'seen_at',
      'ANNUAL-TURNOVER': 'turnover',
      Partner: 'partner',
      Bemerkung: null,
    })
    expect(found.columns[0]).toEqual({
      header: 'Firma',
      samples: ['Müller & Söhne', 'Grüne Gärten'],
      field: 'name',
      confidence: 'likely',
    })
    expect(found.columns.slice(5, 10).map(({ confidence }: any) => confidence)).toEqual([
      'exact',
      'exact',
      'exact',
      'exact',
      'none',
    ])
    expect(server.events()).toEqual(['data_transfer.imports.create.before', 'data_transfer.imports.create.after'])
    const done = await confirmAndRun(id)
    expect(done).toMatchObject({ state: 'completed', errors: [], summary: { created: 2, skipped: 0 } })
    const [first, second] = await organizations()
    expect(first).toMatchObject({
      name: 'Müller & Söhne',
      address: { address: 'Hauptstraße 1; Hof', postcode: '01067', city: 'Dresden', country: 'DE' },
      custom_attributes: { since: '2015-12-31', turnover: 1234567.5, partner: true },
    })
    expect(first.custom_attributes.seen_at).toBe('2024-02-01T14:30:00.000Z')
    expect(second.custom_attributes).toMatchObject({ since: '2016-03-01', turnover: 999.9, partner: false })
  })

  it.each(['utf-16le', 'utf-16be', 'utf-8'] as const)('knows %s by its byte order mark', async (encoding) => {
    const bytes = iconv.encode('name,address.city\nKöln & Søn,København\n', encoding, { addBOM: true })
    const { id } = await record('organizations', 'table.csv', bytes)
    expect((await analysisOf(id)).settings).toMatchObject({ encoding, field_separator: ',' })
    expect(await confirmAndRun(id)).toMatchObject({ state: 'completed', summary: { created: 1 } })
    expect((await organizations())[0]).toMatchObject({ name: 'Köln & Søn', address: { city: 'København' } })
  })

  it('guesses the encodings of other alphabets', async () => {
    const texts = {
      'windows-1251': 'название,город\nРога и копыта,Москва\nКондитерская фабрика имени Бабаева,Санкт-Петербург\n',
      shift_jis: '会社名,住所\n株式会社サンプルのテスト,東京都千代田区丸の内\nソニー株式会社,東京都港区\n',
    }
    for (const [encoding, text] of Object.entries(texts)) {
      const { id } = await record('organizations', 'table.txt', iconv.encode(text, encoding))
      const found = await analysisOf(id)
      expect(found.settings.encoding).toBe(encoding)
      expect(found.columns[0].header).toBe(text.split(',')[0])
    }
  })

  it('finds the order of day and month by a day above 12, and does not guess it', async () => {
    const dates = async (...values: string[]) => {
      const { settings, warnings } = await analyze(
        'organizations',
        `name,since\n${values.map((v) => `A,${v}\n`).join('')}`,
      )
      return [settings.date_format, warnings]
    }
    expect(await dates('3/1/2017', '10/20/2016')).toEqual(['mdy', []])
    expect(await dates('3/1/2017', '20/10/2016')).toEqual(['dmy', []])
    expect(await dates('3.1.2017')).toEqual(['dmy', []])
    expect(await dates('2017/3/1')).toEqual(['ymd', []])
    expect(await dates('2017-03-01', '')).toEqual([null, []])
    expect(await dates('3/1/2017', '4/5/2017')).toEqual([
      null,
      ['The dates in since do not tell whether the day or the month comes first; set date_format.'],
    ])
    expect(await dates('13/1/2017', '1/13/2017', '1/14/2017')).toEqual([
      'mdy',
      ['The dates of the file have different orders of day, month and year.'],
    ])
  })

  it('shows how it reads years of two digits, and does not guess the order of their dates', async () => {
    const dates = async (...values: string[]) => {
      const rows = values.map((value) => `A,${value}\n`).join('')
      const { settings, warnings } = await analyze('organizations', `name,since\n${rows}`)
      return [settings.date_format, warnings]
    }
    const rule =
      'The dates in since have years of two digits: 69 to 99 are read as 1969 to 1999, and 00 to 68 as 2000 to 2068.'
    const open = 'The dates in since do not tell the order of day, month and year; set date_format.'
    expect(await dates('01.02.24')).toEqual(['dmy', [`${rule} 01.02.24 is read as 2024-02-01.`]])
    expect(await dates('1.2.69', '31.12.68')).toEqual(['dmy', [`${rule} 1.2.69 is read as 1969-02-01.`]])
    expect(await dates('3/20/99', '3/4/99')).toEqual(['mdy', [`${rule} 3/20/99 is read as 1999-03-20.`]])
    expect(await dates('20/3/99 14:30')).toEqual(['dmy', [`${rule} 20/3/99 14:30 is read as 1999-03-20 14:30.`]])
    expect(await dates('99/12/31')).toEqual(['ymd', [`${rule} 99/12/31 is read as 1999-12-31.`]])
    expect(await dates('95-12-31')).toEqual(['ymd', [`${rule} 95-12-31 is read as 1995-12-31.`]])
    // These texts are ambiguous: 1 February 2024, 2 January 2024 or 24 February 2001.
    for (const text of ['01/02/24', '01-02-24', '24-02-01']) expect(await dates(text)).toEqual([null, [open, rule]])
    // Dates with four-digit years determine the order of the parts.
    expect(await dates('01/02/24', '31/01/2024')).toEqual(['dmy', [`${rule} 01/02/24 is read as 2024-02-01.`]])
  })

  it('finds the decimal separator, and does not guess it', async () => {
    const numbers = async (...values: string[]) => {
      const rows = values.map((value) => `p;${value}\n`).join('')
      const { settings, warnings } = await analyze('products', `sku;price\n${rows}`)
      return [settings.decimal_separator, warnings]
    }
    expect(await numbers('1.5', '1000')).toEqual([null, []])
    expect(await numbers('1,5', '1000')).toEqual([',', []])
    expect(await numbers('1,234', '5.5')).toEqual(['.', []])
    expect(await numbers('$1,234,567')).toEqual(['.', []])
    expect(await numbers('1.234.567')).toEqual([',', []])
    expect(await numbers('1,234')).toEqual([
      null,
      ['The numbers in price do not tell which character separates decimals; set decimal_separator.'],
    ])
    expect(await numbers('1,5', '2,5', '1.5')).toEqual([
      ',',
      ['The numbers of the file have different decimal separators.'],
    ])
  })

  it('suggests each field once, the columns of values without a header that is known too', async () => {
    const { columns, settings } = await analyze(
      'persons',
      'Full Name,Reach at,Call,Company,Email adress,Email,Kind\nAda,ada@example.com,+44 20 7946 0000,Acme,x,y,z\n',
    )
    expect(columns.map(({ field, confidence }: any) => [field, confidence])).toEqual([
      ['name', 'likely'],
      [null, 'none'],
      ['contact_numbers', 'possible'],
      ['organization_name', 'likely'],
      [null, 'none'],
      ['emails', 'likely'],
      [null, 'none'],
    ])
    expect(settings.mapping['Reach at']).toBeNull()
    const other = await analyze('persons', 'Full Name,Reach at,Kind\nAda,ada@example.com,z\n')
    expect(other.columns[1]).toMatchObject({ field: 'emails', confidence: 'possible' })
    const misspelt = await analyze('leads', 'Opportunty,Deal valu,ID\nx,1,7\n')
    expect(misspelt.settings.mapping).toEqual({ Opportunty: 'title', 'Deal valu': 'lead_value', ID: null })
  })

  it('leaves out columns without a name or with the name of another, and says what is missing', async () => {
    const { settings, warnings, columns } = await analyze('organizations', 'City,,Note,Note\nYork,,a,b\n')
    expect(settings.mapping).toEqual({ City: 'address.city', '': null, Note: null })
    expect(columns).toHaveLength(4)
    expect(warnings).toEqual([
      'The header Note occurs more than once; its columns are left out.',
      'No column is recognized as name.',
      'The column Note is left out; it has 2 values.',
    ])
  })

  it('needs no decision about an export, and reads a workbook', async () => {
    await server.admin.post('/contacts/organizations', { name: 'Acme' })
    const { text } = await server.admin.get('/contacts/organizations/export?format=csv')
    const { settings, warnings } = await analyze('organizations', text)
    expect(settings.mapping).toMatchObject({ name: 'name', since: 'since' })
    expect(Object.values(settings.mapping)).not.toContain(null)
    expect(warnings).toEqual([])
    const { id } = await record(
      'organizations',
      'table.xlsx',
      workbook([
        ['Company', 'Customer since', 'Annual turnover'],
        ['Acme', new Date('2016-03-01'), 1.234],
      ]),
    )
    expect(await analysisOf(id)).toMatchObject({ format: 'xlsx', settings: { date_format: null }, warnings: [] })
    const done = await confirmAndRun(id, { decimal_separator: ',' })
    expect(done).toMatchObject({ state: 'completed', errors: [], summary: { updated: 1 } })
    expect((await organizations())[0].custom_attributes).toMatchObject({ since: '2016-03-01', turnover: 1.234 })
  })

  it('says what is wrong with a file that has no table', async () => {
    const { columns, warnings } = await analyze('organizations', '\n')
    expect([columns, warnings]).toEqual([[], []])
    const { id } = await record('organizations', 'table.csv', Uint8Array.from([1, 2, 0, 129, 141, 255, 0, 0, 129]))
    expect((await analysisOf(id)).warnings).toHaveLength(1)
    expect((await using().post(id, 'validate')).errors).toEqual([
      {
        row: 1,
        column: null,
        code: 'unreadable',
        message: 'The file is not valid UTF-8. Name its encoding, or save it as "CSV UTF-8".',
      },
    ])
  })

  it('is only for those who may read the file', async () => {
    const { id } = await record('organizations', 'table.csv', 'name\nSecret\n')
    const changes = { view_permission: 'individual' }
    const { caller } = await someone(server, ['settings.data_transfer.imports'], changes)
    const { status, text } = await caller.get(`${path}/${id}/analysis`)
    expect([status, text.includes('Secret')]).toEqual([404, false])
    await server.store.db.deleteFrom('files').execute()
    expect((await server.admin.get(`${path}/${id}/analysis`)).status).toBe(404)
  })

  it('suggests what the sales files of another system mean', async () => {
    const at = (name: string) => fileURLToPath(new URL(`../../../shared/data/sales/${name}`, import.meta.url))
    if (!existsSync(at('accounts.csv'))) return
    const read = (name: string) => readFileSync(at(name), 'utf8')
    expect((await analyze('organizations', read('accounts.csv'))).settings.mapping).toMatchObject({ account: 'name' })
    expect((await analyze('products', read('products.csv'))).settings.mapping).toMatchObject({
      product: 'name',
      sales_price: 'price',
    })
    const { settings } = await analyze('leads', read('sales_pipeline.csv'))
    expect(settings).toMatchObject({
      date_format: 'mdy',
      mapping: { close_value: 'lead_value', close_date: { fields: ['closed_at', 'expected_close_date'] } },
    })
  })
})

describe('a mapping', () => {
  const table = 'Company,Since,Remark\nAcme,2016-03-01,fine\n'
  const mapping = { Company: 'name', Since: 'since', Remark: null }

  it('names the field of each column, and errors name the header', async () => {
    const bad = await using().validate('organizations', `${table}Beta,soon,\n`, { mapping })
    expect(bad.mapping).toEqual(mapping)
    expect(bad.errors).toEqual([
      { row: 3, column: 'Since', code: 'validation_failed', message: expect.stringContaining('date') },
    ])
    const { state, summary } = await using().post(bad.id, 'start')
    expect([state, summary]).toMatchObject(['completed', { created: 1, skipped: 1 }])
    expect((await organizations())[0]).toMatchObject({ name: 'Acme', custom_attributes: { since: '2016-03-01' } })
    const report = await server.admin.get(`${path}/${bad.id}/error-report`)
    expect(report.text.split('\r\n').slice(0, 2)).toEqual([
      'Company,Since,Remark,error',
      expect.stringMatching(/^Beta,soon,,Since: /),
    ])
    // The report has the headers of the file, so the same mapping can be used.
    const again = await using().run('organizations', report.text.replace('soon', '2017-01-01'), { mapping })
    expect(again.summary).toMatchObject({ created: 1, skipped: 0 })
  })

  it('may name fields of the type only', async () => {
    const { status, body } = await server.admin.post(path, {
      type: 'organizations',
      action: 'append',
      validation_strategy: 'skip-errors',
      file_id: (await using().record('organizations', table)).file.id,
      mapping: { A: 'nam', B: 'since', C: 'since', D: null, E: null },
    })
    expect([status, body.errors]).toEqual([
      422,
      {
        'mapping.A': ['There is no such field. Did you mean `name`?'],
      },
    ])
  })

  it('must fit the file, and the columns that it does not list are read by their names', async () => {
    const faults = async (header: string, mapping: object) =>
      (await using().validate('organizations', `${header}\na,b,c\n`, { mapping })).errors.map(
        ({ column, message }: any) => [column, message],
      )
    expect(await faults('Company,since,user_id', { Company: 'name' })).toEqual([
      // The errors are in the row, so the header is valid.
      ['user_id', expect.anything()],
      ['since', expect.anything()],
    ])
    expect(await faults('Company,Since,Other', mapping)).toEqual([
      ['Other', 'Unknown column Other. Map it to a field, or to null to leave it out.'],
      ['Remark', 'The file has no column Remark.'],
    ])
    expect(await faults('Company,Since', { Company: { fields: ['name'], fill_down: 'Firm' } })).toContainEqual([
      'Firm',
      'The file has no column Firm.',
    ])
    expect(await faults('Company,name,x', { Company: 'name', x: null })).toEqual([
      ['name', 'The column name occurs twice.'],
    ])
    expect(await faults('Company,Since,Remark', { ...mapping, Company: null })).toEqual([
      ['name', 'The column name is missing.'],
    ])
    expect(await faults('name,,', { '': null })).toEqual([])
  })

  it('is checked again when the import runs, because an attribute may be gone', async () => {
    const { id } = await using().validate('organizations', table, { mapping })
    const { data } = (await server.admin.get('/settings/attributes?code=since')).body
    expect((await server.admin.delete(`/settings/attributes/${data[0].id}`)).status).toBe(409)
    // The reference of the mapping can be missing only when the deletion ran beside the save.
    await server.store.db.deleteFrom('stored_references').execute()
    expect((await server.admin.delete(`/settings/attributes/${data[0].id}`)).status).toBe(200)
    const { state, errors } = await using().post(id, 'start')
    expect([state, errors]).toMatchObject(['failed', [{ message: 'Unknown field since.' }]])
    expect(await organizations()).toEqual([])
  })

  it('starts the import anew when it changes, and not when it is sent back', async () => {
    const { id } = await using().validate('organizations', table, { mapping, date_format: 'dmy' })
    const { data } = (await server.admin.get(`${path}/${id}`)).body
    const same = await server.admin.put(`${path}/${id}`, data)
    expect(same.body.data).toEqual(data)
    const other = await server.admin.put(`${path}/${id}`, { mapping: { ...mapping, Remark: 'address.city' } })
    expect(other.body.data).toMatchObject({ state: 'pending', version: data.version + 1 })
    const none = await server.admin.put(`${path}/${id}`, { mapping: null, date_format: null })
    expect(none.body.data).toMatchObject({ mapping: null, date_format: null })
  })

  it('may come in a form', async () => {
    const { mapping: stored } = await record('organizations', 'table.csv', table, {
      mapping: '{"Company":"name","Remark":null}',
    })
    expect(stored).toEqual({ Company: 'name', Remark: null })
  })

  it('asks a token for the ability to create what a column of another name creates', async () => {
    const caller = await server.as(1, ['data-transfer:*', 'persons:*'])
    const options = { mapping: { Mail: 'emails', Firma: 'organization_name' } }
    const { id } = await using().record('persons', 'name,Mail,Firma\nAda,ada@example.com,Acme\n', options)
    const { status, body } = await caller.post(`${path}/${id}/validate`)
    expect([status, body.required]).toEqual([403, 'organizations:write'])
  })
})

describe('settings of a file', () => {
  it('are not set by an empty field of a form, which has no other way to say null', async () => {
    const table = 'name,since\nAcme,2026-03-01\n'
    const created = await record('organizations', 'a.csv', table, { date_format: '', decimal_separator: '' })
    expect([created.date_format, created.decimal_separator]).toEqual([null, null])
  })

  it('leave the spellings of the API as they are, and read no other by default', async () => {
    const table = 'name,since,turnover,partner\nA,2016-03-01,1234.5,true\nB,1.3.2016,"1.234,5",Yes\n'
    const { errors } = await using().validate('organizations', table)
    expect(errors.map(({ row, column }: any) => [row, column])).toEqual([
      [3, 'since'],
      [3, 'turnover'],
    ])
    const done = await using().run('organizations', table, { date_format: 'dmy', decimal_separator: ',' })
    expect(done).toMatchObject({ errors: [], summary: { created: 2 } })
    expect(
      (await organizations()).map(({ custom_attributes: own }: any) => [own.since, own.turnover, own.partner]),
    ).toEqual([
      ['2016-03-01', 1234.5, true],
      ['2016-03-01', 1234.5, true],
    ])
  })

  it('refuse dates and numbers that do not fit them', async () => {
    const table = 'name,since,turnover\nA,31.2.2016,1\nB,3/13/2016,"1,2,3"\nC,1.3.016,"12.34,5"\n'
    const { errors } = await using().validate('organizations', table, { date_format: 'dmy', decimal_separator: ',' })
    expect(errors.map(({ row, column }: any) => [row, column])).toEqual([
      [2, 'since'],
      [3, 'since'],
      [3, 'turnover'],
      [4, 'since'],
      [4, 'turnover'],
    ])
  })

  it.each([
    ['dmy', '01.02.24', '31.12.68', '1.1.69', '31.12.99'],
    ['mdy', '2/1/24', '12/31/68', '1/1/69', '12-31-99'],
    ['ymd', '24-02-01', '68/12/31', '69 1 1', '99.12.31'],
  ])('read years of two digits from 1969 on, in the order %s', async (format, ...dates) => {
    const table = `name,since\n${dates.map((date, n) => `C${n},${date}\n`).join('')}`
    const done = await using().run('organizations', table, { date_format: format })
    expect(done).toMatchObject({ errors: [], summary: { created: 4 } })
    expect((await organizations()).map(({ custom_attributes: own }: any) => own.since)).toEqual([
      '2024-02-01',
      '2068-12-31',
      '1969-01-01',
      '1999-12-31',
    ])
  })

  it('read times of twelve hours, and yes and no in other words', async () => {
    const rows = ['10/20/2016 12:05 AM,ja', '10/20/2016 2:30:15 pm,NEIN', '10/20/2016,oui', '10/20/2016 13:00 PM,maybe']
    const table = `name,seen_at,partner\n${rows.map((row, n) => `C${n},${row}\n`).join('')}`
    const { errors } = await using().run('organizations', table, { date_format: 'mdy' })
    expect(errors.map(({ row, column }: any) => [row, column])).toEqual([
      [5, 'seen_at'],
      [5, 'partner'],
    ])
    expect((await organizations()).map(({ custom_attributes: own }: any) => [own.seen_at, own.partner])).toEqual([
      ['2016-10-20T00:05:00.000Z', true],
      ['2016-10-20T14:30:15.000Z', false],
      ['2016-10-20T00:00:00.000Z', true],
    ])
  })
})
