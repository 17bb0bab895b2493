// Imports of tables with the marks of spreadsheets and the habits of people, with the settings that
// the analysis suggests.
import iconv from 'iconv-lite'
import { describe, expect, it } from 'vitest'
import { personOf, takingTables } from '../support/taking-tables.ts'
import { useServer } from '../support/using.ts'
import { zip } from '../support/workbook.ts'

const server = useServer({}, async (server) => {
  await server.admin.post('/settings/attributes', {
    code: 'workplace',
    name: 'Workplace',
    type: 'multiselect',
    entity_type: 'persons',
    options: ['REMOTE', 'HYBRID', 'ON_SITE'].map((name) => ({ name })),
  })
})

const { take, stored } = takingTables(() => server.admin)
const values = (points: any[]) => points.map(({ value }) => value)

describe('sheets', () => {
  it('finds the header below the titles of a report', async () => {
    const { analysis, done } = await take(
      'persons',
      'report.csv',
      'Customers of 2026\nMade on 1 March\n\nname,emails,job_title\nAnn,ann@x.example,CEO\nBob,bob@x.example,CFO\n',
    )
    expect([analysis.settings.header_row, done.state]).toEqual([4, 'completed'])
    expect((await stored('persons')).map(({ name }: any) => name)).toEqual(['Ann', 'Bob'])
  })

  it('skips hidden sheets, takes a chosen one, and keeps the zeros that a format shows', async () => {
    const sheet = (rows: string): string =>
      `<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>${rows}</sheetData></worksheet>`
    const text = (at: string, value: string): string => `<c r="${at}" t="inlineStr"><is><t>${value}</t></is></c>`
    const header = `<row r="1">${text('A1', 'name')}${text('B1', 'address.postcode')}</row>`
    const book = zip({
      '[Content_Types].xml':
        '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/></Types>',
      '_rels/.rels':
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="xl/workbook.xml"/></Relationships>',
      'xl/workbook.xml':
        '<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="Lists" sheetId="1" state="hidden" r:id="rId1"/><sheet name="Data" sheetId="2" r:id="rId2"/><sheet name="R&amp;D" sheetId="3" r:id="rId3"/></sheets></workbook>',
      'xl/_rels/workbook.xml.rels': `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">${[1, 2, 3].map((n) => `<Relationship Id="rId${n}" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet" Target="worksheets/sheet${n}.xml"/>`).join('')}<Relationship Id="rId4" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/styles" Target="styles.xml"/></Relationships>`,
      'xl/styles.xml':
        '<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><numFmts count="1"><numFmt numFmtId="164" formatCode="00000"/></numFmts><cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="164"/></cellXfs></styleSheet>',
      'xl/worksheets/sheet1.xml': sheet(`<row r="1">${text('A1', 'secret')}</row>`),
      'xl/worksheets/sheet2.xml': sheet(
        `${header}<row r="2">${text('A2', 'Dresden AG')}<c r="B2" s="1"><v>1067</v></c></row>`,
      ),
      'xl/worksheets/sheet3.xml': sheet(`${header}<row r="2">${text('A2', 'Lab')}<c r="B2"><v>1067</v></c></row>`),
    })
    const { analysis } = await take('organizations', 'book.xlsx', book)
    expect(analysis.sheets).toEqual(['Data', 'R&D'])
    await take('organizations', 'book.xlsx', book, { sheet: 'R&D' })
    expect((await stored('organizations')).map(({ name, address }: any) => [name, address.postcode])).toEqual([
      ['Dresden AG', '01067'],
      ['Lab', '1067'],
    ])
    const none = await take('organizations', 'book.xlsx', book, { sheet: 'Gone' })
    expect(none.done.errors).toMatchObject([{ message: 'The workbook has no sheet Gone.' }])
  })
})

describe('cells of spreadsheets', () => {
  it('does not take an amount for a header, and reads French and Indian numbers', async () => {
    const french = await take('leads', 'f.csv', 'title;lead_value\na;1 234,56 €\nb;12 345 678,9\nc;EUR 5,00\n')
    expect(french.analysis.settings).toMatchObject({ field_separator: ';', decimal_separator: ',', header_row: null })
    expect(french.done.changes).toEqual([{ column: 'lead_value', from: 'EUR', to: 'USD', count: 2 }])
    await take('leads', 'i.csv', 'title,lead_value\nd,"12,34,567.00"\ne,CHF 1’234.50\n')
    expect((await stored('leads')).map(({ lead_value: amount }: any) => amount)).toEqual([
      1234.56, 12345678.9, 5, 1234567, 1234.5,
    ])
  })

  it('reads further separators of lists, and the API refuses a number without its digits', async () => {
    await take(
      'persons',
      'l.csv',
      [
        'name,emails,contact_numbers,tags',
        'A,"ann@x.example / an2@x.example","030/1234567 / 0151 1234567","a / b"',
        'B,"""Otter, Ann"" <b@x.example>; b2@x.example","+1 202 555 0001 x12, +1 202 555 0002","R&D\nvip"',
      ].join('\n'),
    )
    expect((await stored('persons')).map(personOf)).toMatchObject([
      {
        emails: ['ann@x.example', 'an2@x.example'],
        contact_numbers: ['030/1234567', '0151 1234567'],
        tags: ['a', 'b'],
      },
      {
        emails: ['b@x.example', 'b2@x.example'],
        contact_numbers: ['+1 202 555 0001 x12', '+1 202 555 0002'],
        tags: ['R&D', 'vip'],
      },
    ])
    const { body } = await server.admin.post('/contacts/persons', {
      name: 'Sci',
      contact_numbers: [{ value: '4.91512E+11' }],
    })
    expect(body.errors).toEqual({ 'contact_numbers.0.value': ['A spreadsheet has lost digits of this number.'] })
  })

  it('reads further forms of dates and numbers, and empty words', async () => {
    const { done } = await take(
      'leads',
      'forms.csv',
      [
        'title;lead_value;expected_close_date',
        '1;1 234,50 €;1. Februar 2026',
        '2;1.234,50;3 Mar 2026',
        '3;EUR 12,50;March 4th, 2026',
        '4;7,5;2026-05-06 10:00',
        '5;8,5;-',
        '6;9,5;0000-00-00',
      ].join('\n'),
    )
    const found = (await stored('leads')).map((each: any) => [each.lead_value, each.expected_close_date])
    expect(done.errors).toMatchObject([{ row: 2, column: 'expected_close_date' }])
    expect(found).toEqual([
      [1234.5, '2026-03-03'],
      [12.5, '2026-03-04'],
      [7.5, '2026-05-06'],
      [8.5, null],
      [9.5, null],
    ])
    expect(done.changes).toContainEqual({ column: 'expected_close_date', from: '-', to: null, count: 1 })
    expect(done.warnings).toContain('- in expected_close_date is read as empty in 1 row.')
  })

  it('reads a file with a line sep=;', async () => {
    await take('persons', 'excel-sep-line.csv')
    expect((await stored('persons')).map(personOf)).toMatchObject([{ name: 'Sep Arator', emails: ['sep@x.example'] }])
  })

  it('reads guarded numbers, and leaves out cells whose value is lost', async () => {
    const { done } = await take('persons', 'excel-artefacts.csv')
    expect((await stored('persons')).map((each: any) => [each.name, values(each.contact_numbers)])).toEqual([
      ['Sci Number', []],
      ['Guard One', ['01512345678']],
      ['Guard Two', ['01512345678']],
      ['Hash Marks', []],
    ])
    expect(done.errors.map(({ row, column, code }: any) => [row, column, code])).toEqual([
      [2, 'contact_numbers', 'cell_omitted'],
      [5, 'name', 'validation_failed'],
      [6, 'contact_numbers', 'cell_omitted'],
    ])
    expect(done.errors[0].message).toContain('spreadsheet')
  })

  it('reads several values in a cell', async () => {
    await take('persons', 'lists-in-cells.csv')
    expect((await stored('persons')).map(personOf)).toMatchObject([
      {
        emails: ['la@x.example', 'lb@x.example'],
        contact_numbers: ['+1 202 555 0001', '+1 202 555 0002'],
        tags: ['new', 'vip'],
      },
      {
        emails: ['lc@x.example', 'ld@x.example'],
        contact_numbers: ['+49 30 1234567', '+49 30 1234568'],
        tags: ['new', 'vip'],
      },
      { contact_numbers: ['+1 202 555 0001 ext. 12'] },
      { emails: ['lf@x.example'], contact_numbers: ['1-800-FLOWERS'] },
    ])
    await take('persons', 'multi-select.csv')
    const chosen = (await stored('persons')).slice(-2).map((each: any) => each.custom_attributes.workplace)
    expect(chosen.map((options: any[]) => options.length)).toEqual([2, 2])
  })

  it('reads names of countries and words of flags', async () => {
    const { done } = await take('organizations', 'flags-and-countries.csv')
    const organizations = await stored('organizations')
    expect(organizations.map(({ address }: any) => address.country)).toEqual(['DE', 'US', 'DE'])
    expect(done.changes).toContainEqual({ column: 'address.country', from: 'Germany', to: 'DE', count: 1 })
    await take('persons', 'flags.csv')
    expect((await stored('persons')).map(({ subscribed }: any) => subscribed)).toEqual([true, true, false])
  })

  it('reads amounts with currencies, and dates of several forms', async () => {
    const { done } = await take('leads', 'amounts-and-dates.csv')
    expect((await stored('leads')).map((each: any) => [each.title, each.lead_value, each.expected_close_date])).toEqual(
      [
        ['Am One', 1200.5, '2026-12-31'],
        ['Am Two', 1234.5, '2026-02-01'],
        ['Am Three', 1234567.5, '2026-02-01'],
      ],
    )
    expect(done.changes).toContainEqual({ column: 'lead_value', from: 'CHF', to: 'USD', count: 1 })
  })

  it('reads the encodings of Macs, and a file with two encodings', async () => {
    const mac = await take('persons', 'mac-roman.csv')
    expect(mac.analysis.settings.encoding).toBe('macintosh')
    expect(mac.analysis.warnings[0]).toContain('macintosh is a guess')
    const mixed = await take('persons', 'mixed-encodings.csv')
    expect(mixed.done.warnings.join()).toContain('two encodings')
    expect(mixed.analysis.warnings.join()).toContain('two encodings')
    expect((await stored('persons')).map(({ name }: any) => name)).toEqual(['Jürgen', 'Jürgen Müller', 'Jörg'])
  })

  it('never reads a line of UTF-8 as another encoding, whichever has more lines', async () => {
    const latin = iconv.encode('name,emails\nJörg,a@x.example\nBjörn,b@x.example\n', 'windows-1252')
    const { done } = await take('persons', 'x.csv', Buffer.concat([latin, Buffer.from('Jürgen,c@x.example\n')]))
    expect(done.warnings).toEqual(['The file has two encodings: 2 lines are read as windows-1252.'])
    const marked = Buffer.from('\ufeffname,emails\nMüller,d@x.example\n')
    await take('persons', 'y.csv', Buffer.concat([marked, iconv.encode('Grün,e@x.example\n', 'windows-1252')]))
    const dos = iconv.encode('name;emails\nStraßer Süß;f@x.example\n', 'cp850')
    expect((await take('persons', 'z.csv', dos)).analysis.settings.encoding).toBe('cp850')
    expect((await stored('persons')).map(({ name }: any) => name)).toEqual([
      ...['Jörg', 'Björn', 'Jürgen', 'Müller', 'Grün', 'Straßer Süß'],
    ])
  })

  it('imports a contact without the name that an Exchange server has for it, and equal addresses once', async () => {
    const { done } = await take(
      'persons',
      'exchange.csv',
      [
        'First Name,Last Name,E-mail Address,E-mail 2 Address,Business Phone',
        'Ex,Change,/o=ExchangeLabs/ou=Group/cn=Recipients/cn=abc,,030 123456',
        'Two,Times,t@x.example,T@x.example,"030 123456; 030/123456"',
      ].join('\n'),
    )
    expect(done.errors).toMatchObject([{ row: 2, column: 'E-mail Address', code: 'cell_omitted' }])
    expect((await stored('persons')).map(personOf)).toMatchObject([
      { name: 'Ex Change', emails: [], contact_numbers: ['030 123456'] },
      { name: 'Two Times', emails: ['t@x.example'], contact_numbers: ['030 123456'] },
    ])
  })
})
