// Reads a multipart form of version 1. The canonical operation uploads each file as it arrives, and
// the file id becomes the value of the field.
import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { nestFields } from '../../contract/input/form-fields.ts'
import { operations } from '../../contract/operations.gen.ts'
import { Problem } from '../../contract/output/problems.ts'
import { type Reservation, unlimited } from '../../kernel/files/body-memory-budget.ts'
import { eachPart } from '../../kernel/files/multipart-parts.ts'
import type { JsonFields } from './values.ts'

/** Uploads a multipart form with one file and returns the file id. */
export type UploadForm = (form: Readable, contentType: string) => Promise<number>

/** The maximum size of all texts of a form together, in bytes. A JSON body has the same limit. */
const maxTextBytes = 1024 * 1024
const maxUploads = 20
const maxFormBytes = operations.uploadFile.maxFormBytes

export async function formFields(
  request: Readable,
  { type, length, loan }: { type: string; length: number; loan: Reservation },
  upload: UploadForm,
): Promise<JsonFields> {
  if (length > maxFormBytes) throw new Problem('payload_too_large')
  const fields: { name: string; value: string; place: number }[] = []
  let textBytes = 0
  let parts = 0
  await eachPart(request, type, {
    most: maxFormBytes,
    maxFiles: maxUploads,
    encoding: 'utf-8',
    isFile: (_name, filename) => filename !== undefined,
    longest: () => maxTextBytes - textBytes,
    text(name, value) {
      textBytes += Buffer.byteLength(value)
      fields.push({ name, value, place: parts++ })
    },
    async file(name, stream, filename = '') {
      const place = parts++
      // For a file field without a file, browsers send an empty part.
      if (filename === '') return void stream.resume()
      const boundary = `accord-${randomBytes(16).toString('hex')}`
      const form = Readable.from(formOfOne(stream, filename, boundary))
      const id = await upload(form, `multipart/form-data; boundary=${boundary}`)
      fields.push({ name, value: String(id), place })
    },
    loan,
    whole: unlimited,
  })
  // Uploads run concurrently, so they may finish in another order.
  const sorted = fields.sort((one, other) => one.place - other.place)
  return nestFields(
    sorted.map(({ name, value }) => [name, value]),
    true,
  ).value
}

/** Writes a form with one file (RFC 7578). */
async function* formOfOne(file: Readable, filename: string, boundary: string): AsyncGenerator<Buffer | string> {
  const name = filename
    .replaceAll(/[\r\n]/g, ' ')
    .replaceAll('\\', '\\\\')
    .replaceAll('"', '\\"')
  yield `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${name}"\r\n\r\n`
  yield* file as AsyncIterable<Buffer>
  yield `\r\n--${boundary}--\r\n`
}
