// image and file: stored as the id of a file, shown as FileRef, written as either. That a file can be attached, and is, is
// seen to in attachments.ts.
import { anyOf, component, id, numberAt, type ValueType } from './type.ts'

/** Of what was sent for a file. */
export const idOf = (value: unknown): unknown =>
  typeof value === 'object' && value !== null && 'id' in value ? value.id : value

export const file: ValueType = {
  input: () => ({ anyOf: [id, component('FileRefInput')] }),
  output: () => component('FileRef'),
  example: () => ({
    id: 6,
    name: 'plan.pdf',
    size: 52_100,
    content_type: 'application/pdf',
    url: 'http://localhost:8000/api/admin/files/6/download',
  }),
  store: idOf,
  read: (text) => (/^\d{1,15}$/.test(text) ? Number(text) : undefined),
  takes: 'ids of files',
  matches: anyOf(numberAt),
}
export const image = file
