// Which columns an analysis takes for telephone numbers and addresses when the header does not say
// so, and which headers it takes for misspelt names.
import { describe, expect, it } from 'vitest'
import { importing, path } from '../support/importing.ts'
import { useSharedServer } from '../support/using.ts'

const server = useSharedServer()

async function analyze(type: string, table: string) {
  const { id } = await importing(server.admin).record(type, table)
  return (await server.admin.get(`${path}/${id}/analysis`)).body.data
}

/** Returns the suggestion for a column of persons: its field, confidence, mapping and warnings. */
async function guess(header: string, values: readonly string[]) {
  const rows = values.map((value, index) => `P ${index},p${index}@example.com,"${value}"\n`).join('')
  const { columns, settings, warnings } = await analyze('persons', `Name,E-Mail,${header}\n${rows}`)
  const { field, confidence } = columns[2]
  return { field, confidence, mapped: settings.mapping[header], warnings }
}

describe('values that are not telephone numbers', () => {
  it.each([
    ['Anfang', ['01.02.2024', '03.04.2024']],
    ['Birthday', ['01/02/1961', '03/04/1970']],
    ['Start date', ['01/02/2024']],
    ['Mitglied seit', ['01-02-2024']],
    ['Seen', ['01 02 2024', '3.4.2024']],
    ['Valid', ['01.02.2024 - 03.04.2024', '01.02.2024-03.04.2024']],
    ['Left', ['00.00.0000', '31.02.2024']],
    ['Kontonummer', ['0532013000']],
    ['IBAN', ['DE89370400440532013000', 'DE89 3704 0044 0532 0130 00']],
    ['Place code', ['01234', '10115']],
    ['Order', ['000123456', '4711000815']],
    ['Year', ['2019', '2020']],
    ['Moment', ['2024-01-02T03:04:05Z', '2024-01-02 03:04']],
    ['Clock', ['01:02:03', '09:30']],
    ['Paid', ['0.12345678', '(1.234.567)', '+1.234.567', '1.234.567,00']],
    ['Host', ['010.001.002.003', '0.0.0.0']],
    ['Latitude', ['+52.520008', '+13.404954']],
    ['Build', ['0.10.20240101']],
  ])('%s', async (header, values) => {
    expect(await guess(header, values)).toMatchObject({ field: null, confidence: 'none', mapped: null })
  })
})

describe('telephone numbers', () => {
  it.each([
    ['+49 151 23456789', '+1 202 555 0143', '+44 (0)20 7946 0000'],
    ['(212) 555-0143', '(020) 7946 0000'],
  ])('that can be nothing else are mapped, with a warning: %s', async (...values) => {
    expect(await guess('Reach at', values)).toMatchObject({
      field: 'contact_numbers',
      confidence: 'possible',
      mapped: 'contact_numbers',
      warnings: ['Only the values of the column Reach at suggest the field contact_numbers; it is read so.'],
    })
  })

  it.each(['030/1234567', '0151 2345678', '01 23 45 67 89', '020 7946 0000', '06-12345678', '0041 44 668 18 00'])(
    'that a tax number may look like are proposed only: %s',
    async (value) => {
      expect(await guess('Reach at', [value])).toEqual({
        field: 'contact_numbers',
        confidence: 'possible',
        mapped: null,
        warnings: [
          'Only the values of the column Reach at suggest the field contact_numbers; map it if that is right.',
          'The column Reach at is left out; it has 1 value.',
        ],
      })
    },
  )

  it('that can be nothing else come before values that are proposed only', async () => {
    const { settings, columns } = await analyze(
      'persons',
      'Name,Steuernummer,Reach at\nA,012/345/67890,+49 30 1234567\nB,012/345/67891,+49 30 1234568\n',
    )
    expect(settings.mapping).toMatchObject({ Steuernummer: null, 'Reach at': 'contact_numbers' })
    expect(columns[1]).toMatchObject({ field: null, confidence: 'none' })
  })

  it('below a header that says so are mapped in every form, in several columns', async () => {
    const { settings, warnings } = await analyze(
      'persons',
      'Name,Phone,Mobile,Work phone,Home phone,Phone 2,Phone 3,Office\n' +
        'Ada,2025550143,0151 2345678,212-555-0143,(212) 555-0143 x12,01 23 45 67 89,020 7946 0000,01/02/2024\n',
    )
    const fields = Object.values(settings.mapping).map((mapped: any) => mapped?.fields?.[0] ?? mapped)
    expect(fields).toEqual(['name', ...Array(6).fill('contact_numbers'), null])
    expect(warnings).toEqual(['The column Office is left out; it has 1 value.'])
  })
})

describe('misspelt headers', () => {
  it.each([
    ['persons', 'USt-Id', 'DE123456789', null],
    ['persons', 'VAT Id', '7', null],
    ['persons', 'Use Id', '7', null],
    ['persons', 'Kunden-Id', '7', null],
    ['persons', 'Contract number', '2024-001', null],
    ['organizations', 'Stage', 'won', null],
    ['organizations', 'Steuer-ID', '7', null],
    ['persons', 'Organisation name', 'Acme', 'organization_name'],
    ['persons', 'Job titel', 'Engineer', 'job_title'],
    ['persons', 'Emial', 'ada@example.com', 'emails'],
    ['leads', 'Opportunty', 'x', 'title'],
  ])('%s: %s with %s is %s', async (type, header, value, field) => {
    const { columns, settings, warnings } = await analyze(type, `${header},Other\n${value},\n`)
    expect([columns[0].field, settings.mapping[header]]).toEqual([field, field])
    const told = `The column ${header} is read as ${field}, because the names are similar.`
    expect(warnings.includes(told)).toBe(field !== null)
  })

  it('an address below another header is read, and a repeated header is not said to be', async () => {
    const { settings, warnings } = await analyze('persons', 'Name,Kontakt,Owner,Owner\nA,a@x.example,+49 30 123456,x\n')
    expect(settings.mapping).toMatchObject({ Kontakt: 'emails', Owner: null })
    expect(warnings).toContain('The header Owner occurs more than once; its columns are left out.')
    expect(warnings.filter((warning: string) => warning.startsWith('Only the values'))).toEqual([
      'Only the values of the column Kontakt suggest the field emails; it is read so.',
    ])
  })
})
