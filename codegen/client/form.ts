// Sends a body with a file as multipart/form-data, and any other body as JSON.
import { defaultBodySerializer } from 'openapi-fetch'

const isBlob = (value: unknown): value is Blob => value instanceof Blob

const hasFile = (value: unknown): boolean => isBlob(value) || (Array.isArray(value) && value.some(isBlob))

/** The types of openapi-fetch omit the headers, which request an urlencoded form. */
const serialize = defaultBodySerializer as (body: unknown, headers?: Headers) => string | FormData

/** The body serializer of openapi-fetch, with files. */
export function serializeBody(body: unknown, headers?: Headers): string | FormData {
  const fields = Object.entries(body ?? {})
  if (!fields.some(([, value]) => hasFile(value))) return serialize(body, headers)
  const form = new FormData()
  for (const [name, value] of fields)
    for (const each of hasFile(value) ? [value].flat() : [value]) add(form, name, each)
  return form
}

function add(form: FormData, name: string, value: unknown): void {
  if (value === undefined) return
  if (isBlob(value)) form.append(name, value)
  // In a form, the server accepts an empty text as null, and lists and objects as JSON.
  else form.append(name, typeof value === 'object' ? (value === null ? '' : JSON.stringify(value)) : String(value))
}
