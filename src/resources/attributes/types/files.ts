// The types `image` and `file`. A value is stored as the id of a file and shown as a FileRef;
// bodies may send either form. attachments.ts attaches the files.
import { anyOf, idSchema, numberAt, refTo, type ValueType } from './value-type.ts'

/** Returns the file id of a value that is an id or a FileRef. */
export const idOf = (value: unknown): unknown =>
  typeof value === 'object' && value !== null && 'id' in value ? value.id : value

export const file: ValueType = {
  input: () => ({ anyOf: [idSchema, refTo('FileRefInput')] }),
  output: () => refTo('FileRef'),
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
