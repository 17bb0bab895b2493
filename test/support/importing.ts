// Runs imports for tests through the API: uploads a table, creates the import, validates it and
// starts it.
import type { Caller } from './app.ts'
import { file, form } from './form.ts'

export const path = '/settings/data-transfer/imports'

/** Returns rows of cells as CSV. */
export const csvOf = (rows: readonly (readonly (string | number)[])[]): string =>
  rows
    .map((row) =>
      row.map((cell) => (/[",\r\n]/.test(String(cell)) ? `"${String(cell).replaceAll('"', '""')}"` : cell)).join(','),
    )
    .join('\n')

export function importing(caller: Caller) {
  /** Uploads a table and creates its import. By default, the import runs inside the request. */
  const record = async (type: string, table: string | Uint8Array, options: Record<string, unknown> = {}) => {
    const name = typeof table === 'string' ? 'table.csv' : 'table.xlsx'
    const sent = await form({ file: file(name, table) })
    const upload = await caller.post('/files', sent.body, { headers: sent.headers })
    const defaults = { type, action: 'append', validation_strategy: 'skip-errors', process_in_queue: false }
    const { status, body, text } = await caller.post(path, { ...defaults, file_id: upload.body.data.id, ...options })
    if (status !== 201) throw new Error(text)
    return body.data
  }
  const post = async (id: number, what: 'validate' | 'start' | 'cancel') => {
    const { status, body, text } = await caller.post(`${path}/${id}/${what}`)
    if (status !== 202) throw new Error(`${status} ${text}`)
    return body.data
  }
  return {
    record,
    post,
    validate: async (type: string, table: string | Uint8Array, options: Record<string, unknown> = {}) =>
      post((await record(type, table, options)).id, 'validate'),
    /** Creates, validates and starts an import. */
    run: async (type: string, table: string | Uint8Array, options: Record<string, unknown> = {}) => {
      const { id } = await record(type, table, options)
      const validated = await post(id, 'validate')
      if (validated.state !== 'validated') throw new Error(JSON.stringify(validated.errors))
      return post(id, 'start')
    },
  }
}
