// Reports of failed rows in the format of the imported file, and exports as workbooks and with
// labels.
import { buffer } from 'node:stream/consumers'
import { parse } from 'csv-parse/sync'
import iconv from 'iconv-lite'
import { readSheet } from 'read-excel-file/universal'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { writeWorkbook } from '../../src/kernel/files/workbook.ts'
import { file, form } from '../support/form.ts'
import { importing, path } from '../support/importing.ts'
import { someone } from '../support/people.ts'
import { useServer } from '../support/using.ts'
import { workbook } from '../support/workbook.ts'

const workbookType = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'

/** The ids of the options of the attribute `areas`. */
let areas: number[]
const server = useServer({}, async (server) => {
  const options = [{ name: 'North' }, { name: 'South|East' }]
  const { body } = await server.admin.post('/settings/attributes', {
    ...{ code: 'areas', name: 'Areas', type: 'multiselect', entity_type: 'organizations', options },
  })
  areas = body.data.options.map(({ id }: { id: number }) => id)
})

const using = () => importing(server.admin)

/** Creates a record and returns its id. */
async function add(at: string, body: object): Promise<number> {
  const reply = await server.admin.post(at, body)
  if (reply.status !== 201) throw new Error(reply.text)
  return reply.body.data.id
}

const sheetOf = (bytes: Buffer, sheet = 1) =>
  readSheet(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer, sheet)

/** Calls the server and returns the bytes of the reply. */
async function bytesOf(at: string, headers: Record<string, string> = {}) {
  const answer = await server.app.http.inject({
    method: 'GET',
    url: `/api/admin${at}`,
    headers: { authorization: `Bearer ${server.admin.token}`, ...headers },
  })
  return { status: answer.statusCode, headers: answer.headers, bytes: answer.rawPayload }
}

describe('the error report', () => {
  it('has the separator and the encoding of the file, and can be imported with the same settings', async () => {
    const text = 'Firma;Besitzer\r\nMüller;ich\r\nGut;\r\n'
    const options = { encoding: 'windows-1252', field_separator: ';', mapping: { Firma: 'name', Besitzer: 'user_id' } }
    const about = {
      type: 'organizations',
      action: 'append',
      validation_strategy: 'skip-errors',
      process_in_queue: 'false',
    }
    const sent = await form({
      ...about,
      ...options,
      mapping: JSON.stringify(options.mapping),
      file: file('kunden.txt', iconv.encode(text, 'windows-1252')),
    })
    const { id } = (await server.admin.post(path, sent.body, { headers: sent.headers })).body.data
    await using().post(id, 'validate')
    const { headers, bytes } = await bytesOf(`${path}/${id}/error-report?format=original`)
    expect(headers['content-type']).toBe('text/csv; charset=windows-1252')
    expect(headers['content-disposition']).toContain(`import-${id}-errors.txt`)
    expect(iconv.decode(bytes, 'windows-1252').split('\r\n').slice(0, 2)).toEqual([
      'Firma;Besitzer;error',
      'Müller;ich;Besitzer: Must be a whole number or null.',
    ])
    const csv = await bytesOf(`${path}/${id}/error-report`)
    expect([csv.headers['content-type'], csv.bytes.toString().split('\r\n')[0]]).toEqual([
      'text/csv; charset=utf-8',
      'Firma,Besitzer,error',
    ])
    const corrected = iconv.encode(iconv.decode(bytes, 'windows-1252').replace(';ich;', ';1;'), 'windows-1252')
    const again = await form({
      ...about,
      ...options,
      mapping: JSON.stringify(options.mapping),
      file: file('k.csv', corrected),
    })
    const second = (await server.admin.post(path, again.body, { headers: again.headers })).body.data
    expect((await using().post(second.id, 'validate')).state).toBe('validated')
    expect((await using().post(second.id, 'start')).summary).toMatchObject({ created: 1, skipped: 0 })
  })

  it('of a workbook is a workbook', async () => {
    const table = workbook([
      ['name', 'user_id'],
      ['=1+1', 'me'],
      ['Good', ''],
    ])
    const { id } = await using().validate('organizations', table)
    const { headers, bytes } = await bytesOf(`${path}/${id}/error-report?format=original`)
    expect([headers['content-type'], headers['content-disposition']]).toEqual([
      workbookType,
      `attachment; filename=import-${id}-errors.xlsx`,
    ])
    expect(await sheetOf(bytes)).toEqual([
      ['name', 'user_id', 'error'],
      ['=1+1', 'me', 'user_id: Must be a whole number or null.'],
    ])
    const again = await using().validate('organizations', new Uint8Array(bytes))
    expect(again.errors).toMatchObject([{ row: 2, column: 'user_id' }])
  })

  it('has the rows imported without cells for a caller who names them', async () => {
    const done = await using().run('organizations', 'name,user_id\nAcme,me\nBeta,\n', { omit_invalid_cells: true })
    expect((await bytesOf(`${path}/${done.id}/error-report`)).status).toBe(404)
    const { bytes } = await bytesOf(`${path}/${done.id}/error-report?rows=omitted`)
    expect(bytes.toString()).toBe('name,user_id,error\r\nAcme,me,user_id: Must be a whole number or null.\r\n')
  })
})

describe('an export', () => {
  it('as a workbook has the rows of the CSV file, as texts, numbers and flags', async () => {
    const made = await server.admin.post('/products', {
      sku: '=cmd()',
      name: "'=kept & <b>",
      price: 1234.5,
      description: 'two\nlines',
    })
    const { headers, bytes } = await bytesOf('/products/export?format=xlsx')
    expect([headers['content-type'], headers['content-disposition']]).toEqual([
      workbookType,
      'attachment; filename=products-2026-03-01.xlsx',
    ])
    const [names, ...rows] = (await sheetOf(bytes)) as unknown[][]
    const { text } = await server.admin.get('/products/export?format=csv')
    expect(names).toEqual((parse(text) as string[][])[0])
    const at = (name: string) => rows[0]?.[(names ?? []).indexOf(name)]
    expect([at('sku'), at('price'), at('description')]).toEqual(['=cmd()', 1234.5, 'two\nlines'])
    const product = `/products/${made.body.data.id}`
    const before = (await server.admin.get(product)).body.data
    const done = await using().run('products', new Uint8Array(bytes))
    expect(done).toMatchObject({ errors: [], summary: { updated: 1, skipped: 0 } })
    expect((await server.admin.get(product)).body.data).toEqual(before)
    const byAccept = await bytesOf('/products/export', { accept: workbookType })
    expect(byAccept.headers['content-type']).toBe(workbookType)
  })

  it('has the names of owners, organizations and options beside their ids', async () => {
    const organizationId = await add('/contacts/organizations', {
      name: 'Acme',
      user_id: 1,
      custom_attributes: { areas },
    })
    const personId = await add('/contacts/persons', { name: 'Ada', organization_id: organizationId, user_id: null })
    const rowsOf = async (at: string) =>
      parse((await server.admin.get(`${at}/export?format=csv`)).text, { columns: true }) as Record<string, string>[]
    const [organization] = await rowsOf('/contacts/organizations')
    expect(organization).toMatchObject({ user_id: '1', areas: areas.join('|'), 'areas.name': '["North","South|East"]' })
    expect(organization?.['user.name']).not.toBe('')
    expect((await rowsOf('/contacts/persons'))[0]).toMatchObject({
      organization_id: String(organizationId),
      'organization.name': 'Acme',
      user_id: '',
      'user.name': '',
    })
    const leadId = await add('/leads', { title: 'Seats', lead_value: 1, person_id: personId })
    const [lead] = await rowsOf('/leads')
    const { data } = (await server.admin.get(`/leads/${leadId}`)).body
    for (const name of ['person', 'organization', 'source', 'type', 'pipeline', 'stage'])
      expect(lead?.[`${name}.name`]).toBe(data[name].name)
  })

  it('has the names of the records that attributes refer to, as the labels of the record', async () => {
    const make = (body: object) => server.admin.post('/settings/attributes', { entity_type: 'leads', ...body })
    await make({ code: 'referrer', name: 'Referrer', type: 'lookup', lookup_type: 'persons' })
    await make({ code: 'places', name: 'Places', type: 'multiselect', lookup_type: 'lead_sources' })
    const referrer = await add('/contacts/persons', { name: '=Ada' })
    const values = { referrer, places: [2, 1] }
    const keys = ['leads', 'leads.view', 'leads.export']
    const { caller, id } = await someone(server, keys, { view_permission: 'individual' })
    const lead = { title: 'Seats', lead_value: 1, user_id: id, custom_attributes: values }
    expect((await server.admin.post('/leads', lead)).status).toBe(201)
    await server.admin.post('/leads', { title: 'None', lead_value: 1, user_id: id })
    // The caller may not see the person. A reference shows its name to everyone.
    expect((await caller.get(`/contacts/persons/${referrer}`)).status).not.toBe(200)
    const [{ custom_labels: labels }] = (await caller.get('/leads?sort=id&include=custom_labels')).body.data
    expect(labels.referrer).toBe('=Ada')
    const { text } = await caller.get('/leads/export?format=csv&sort=id')
    const [first, second] = parse(text, { columns: true }) as Record<string, string>[]
    expect(first).toMatchObject({
      referrer: String(referrer),
      'referrer.name': "'=Ada",
      places: '2|1',
      'places.name': labels.places.join('|'),
    })
    expect(second).toMatchObject({ referrer: '', 'referrer.name': '', places: '', 'places.name': '' })
    const { headers, bytes } = await bytesOf('/leads/export?format=xlsx&sort=id')
    expect(headers['content-type']).toBe(workbookType)
    const [names = [], row = []] = await sheetOf(bytes)
    expect(row[names.indexOf('referrer.name')]).toBe('=Ada')
    expect((await caller.get('/leads/export')).text).not.toContain('custom_labels')
    expect((await using().run('leads', text)).errors).toEqual([])
  })

  it('shows the names that the record shows, and no others', async () => {
    const keys = ['leads', 'leads.view', 'leads.export']
    const { caller, id } = await someone(server, keys, { view_permission: 'individual' })
    const person = await add('/contacts/persons', { name: 'Ada' })
    await add('/leads', { title: 'Seats', lead_value: 1, person_id: person, user_id: id })
    const { text } = await caller.get('/leads/export?format=csv')
    const [lead] = parse(text, { columns: true }) as Record<string, string>[]
    const [record] = (await caller.get('/leads')).body.data
    expect(lead?.['person.name']).toBe(record.person.name)
    expect(lead?.['user.name']).toBe(record.user.name)
  })
})

describe('writeWorkbook', () => {
  it('gives the same bytes for the same rows, whenever it is called', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    onTestFinished(() => void vi.useRealTimers())
    vi.setSystemTime('2026-03-01T09:30:00Z')
    const first = await buffer(writeWorkbook(groups(3)))
    vi.setSystemTime('2027-03-01T09:30:00Z')
    expect((await buffer(writeWorkbook(groups(3)))).equals(first)).toBe(true)
  })

  async function* groups(count: number) {
    yield [['n', 'text']]
    for (let n = 0; n < count; n++) yield [[n, `row ${n} \u0001 _x0041_ \ud800`]]
  }

  it('goes on in another sheet when one is full, and escapes what XML cannot hold', async () => {
    const bytes = await buffer(writeWorkbook(groups(250), { maxRows: 101 }))
    const sheets = [await sheetOf(bytes, 1), await sheetOf(bytes, 2), await sheetOf(bytes, 3)]
    expect(sheets.map((rows) => rows.length)).toEqual([101, 101, 51])
    expect(sheets.map((rows) => rows[0])).toEqual(Array.from({ length: 3 }, () => ['n', 'text']))
    expect(sheets[2]?.at(-1)).toEqual([249, 'row 249 \u0001 _x0041_ \ufffd'])
  })

  it('reads no further than its reader does', async () => {
    let read = 0
    let isClosed = false
    async function* endless() {
      try {
        for (;;) yield [[++read, Math.random().toString(36).repeat(20)]]
      } finally {
        isClosed = true
      }
    }
    const written = writeWorkbook(endless())
    await written.next()
    // Reading stops once the buffers of the streams are full.
    const readLater = async (): Promise<number> => {
      const before = read
      await new Promise((resolve) => setTimeout(resolve, 100))
      return read - before
    }
    await expect.poll(readLater).toBe(0)
    await written.return(undefined)
    expect(isClosed).toBe(true)
  })

  it('fails when its rows fail', async () => {
    async function* failing() {
      yield [['a']]
      throw new Error('The snapshot is gone.')
    }
    await expect(buffer(writeWorkbook(failing()))).rejects.toThrow('The snapshot is gone.')
  })
})
