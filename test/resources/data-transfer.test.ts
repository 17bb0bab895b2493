// Rules of import records that the generated contract tests do not check.
import { describe, expect, it } from 'vitest'
import { file, form } from '../support/form.ts'
import { useNewServers } from '../support/using.ts'

const path = '/settings/data-transfer/imports'
const options = { type: 'persons', action: 'append', validation_strategy: 'skip-errors' }

const server = useNewServers()

async function csv(text = 'name,emails\nAda,ada@example.com\n', name = 'persons.csv') {
  const { body, headers } = await form({ file: file(name, text) })
  return (await server.admin.post('/files', body, { headers })).body.data
}
const recorded = async (changes: object = {}) =>
  (await server.admin.post(path, { ...options, file_id: (await csv()).id, ...changes })).body.data

describe('createImport', () => {
  it('records an import that waits, with its file, and gives the file back', async () => {
    const file = await csv()
    server.events()
    const { status, body } = await server.admin.post(path, { ...options, file_id: file.id })
    expect(status).toBe(201)
    expect(body.data).toMatchObject({
      ...options,
      state: 'pending',
      allowed_errors: 0,
      field_separator: ',',
      process_in_queue: true,
      progress: 0,
      errors: [],
      summary: { created: 0, updated: 0, deleted: 0, skipped: 0 },
      file: { id: file.id, name: 'persons.csv', content_type: 'text/csv' },
      file_path: `/api/admin${path}/${body.data.id}/file`,
      error_file_path: null,
    })
    expect(server.events()).toEqual(['data_transfer.imports.create.before', 'data_transfer.imports.create.after'])
    const download = await server.admin.get(`//api/admin${path}/${body.data.id}/file`)
    expect([download.status, download.text]).toEqual([200, 'name,emails\nAda,ada@example.com\n'])
    expect(download.headers['content-disposition']).toContain('attachment')
    const back = await server.admin.put(`${path}/${body.data.id}`, body.data)
    expect([back.status, back.body.data.version]).toEqual([200, 1])
    // The file now belongs to the import and cannot be deleted separately.
    expect((await server.admin.delete(`/files/${file.id}`)).body.code).toBe('in_use')
  })

  it('takes the file in a form as well, in one request', async () => {
    const { body, headers } = await form({ ...options, file: file('p.csv', 'name,emails\n'), allowed_errors: '3' })
    const { status, body: reply } = await server.admin.post(path, body, { headers })
    expect(status).toBe(201)
    expect(reply.data).toMatchObject({ allowed_errors: 3, file: { name: 'p.csv', size: 12 } })
    expect(server.events()).toEqual(['data_transfer.imports.create.before', 'data_transfer.imports.create.after'])
  })

  it('wants a file, and one that can hold a table', async () => {
    const without = await server.admin.post(path, options)
    expect(without.body.errors).toEqual({ file_id: ['The field is required.'] })
    const picture = await csv('%PDF-1.4\n%âãÏÓ\n1 0 obj\n', 'persons.csv')
    const { status, body } = await server.admin.post(path, { ...options, file_id: picture.id })
    expect([status, Object.keys(body.errors)]).toEqual([422, ['file_id']])
  })

  it('copies a file that belongs to another import', async () => {
    const first = await recorded()
    const second = await recorded({ file_id: first.file.id })
    expect(second.file.id).not.toBe(first.file.id)
    expect((await server.admin.delete(`${path}/${first.id}`)).status).toBe(200)
    expect((await server.admin.get(`${path}/${second.id}/file`)).status).toBe(200)
  })
})

describe('updateImport', () => {
  it('starts anew with other options or another file, and keeps its type', async () => {
    const { id, file } = await recorded()
    await server.store.db
      .updateTable('imports')
      .set({ state: 'invalid', errors_count: 3, processed_rows_count: 9 })
      .where('id', '=', id)
      .execute()
    expect((await server.admin.put(`${path}/${id}`, { type: 'leads' })).body.errors).toEqual({
      type: ['The type of an import cannot be changed.'],
    })
    const other = await csv('name;emails\n', 'other.csv')
    const { body } = await server.admin.put(`${path}/${id}`, { file_id: other.id, field_separator: ';' })
    expect(body.data).toMatchObject({
      state: 'pending',
      errors_count: 0,
      processed_rows_count: 0,
      file: { id: other.id },
    })
    expect((await server.admin.get(`/files/${file.id}`)).status).toBe(404)
  })

  it('is refused while the import runs or when it is over', async () => {
    const { id } = await recorded()
    for (const state of ['validating', 'processing', 'completed'] as const) {
      await server.store.db.updateTable('imports').set({ state }).where('id', '=', id).execute()
      server.events()
      const { status, body } = await server.admin.put(`${path}/${id}`, { allowed_errors: 5 })
      expect([status, body.code]).toEqual([409, 'state_conflict'])
      expect(server.events()).toEqual([])
    }
  })
})

describe('deleteImport', () => {
  it('takes the file with it, but not while it is processing', async () => {
    const { id, file } = await recorded()
    await server.store.db.updateTable('imports').set({ state: 'processing' }).where('id', '=', id).execute()
    expect((await server.admin.delete(`${path}/${id}`)).status).toBe(409)
    await server.store.db.updateTable('imports').set({ state: 'failed' }).where('id', '=', id).execute()
    expect((await server.admin.delete(`${path}/${id}`)).status).toBe(200)
    expect((await server.admin.get(`/files/${file.id}`)).status).toBe(404)
  })
})

describe('downloadImportSample', () => {
  it('has the columns of the type and those of own attributes', async () => {
    await server.admin.post('/settings/attributes', { code: 'vat', name: 'VAT', type: 'text', entity_type: 'persons' })
    const { status, text, headers } = await server.admin.get(`/settings/data-transfer/import-samples/persons`)
    expect(status).toBe(200)
    expect(headers['content-type']).toContain('text/csv')
    expect(text.split('\r\n')[0]).toBe(
      'name,emails,contact_numbers,organization_id,organization_name,job_title,user_id,tags,subscribed,language,external_ids,vat',
    )
    expect((await server.admin.get(`/settings/data-transfer/import-samples/quotes`)).status).toBe(404)
  })
})
