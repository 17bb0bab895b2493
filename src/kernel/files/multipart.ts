// Reads multipart/form-data part by part, after authentication (RFC 7578). Files go to the file
// store, texts are collected, and reading stops at a limit. The body for the handler contains a key
// for each file.
import type { Readable } from 'node:stream'
import { type FormField, isFile, maxFileLength, readForm } from '../../contract/input/form.ts'
import type { Shape } from '../../contract/input/normalize.ts'
import type { ParsedBody } from '../../contract/input/sent.ts'
import type { Context } from '../context.ts'
import { bestEffort } from '../runtime/unavailable.ts'
import { bodies, formsOfBytes, type Reservation, reserve, unlimited } from './body-memory-budget.ts'
import type { Upload } from './file-store.ts'
import { bytesOf, eachPart, maxParts } from './multipart-parts.ts'
import { asNamed, fieldsOf, textsOnly } from './urlencoded-bytes.ts'

type Received = { body: ParsedBody; uploads: Uploads }
/** The files of one request. */
export interface Uploads {
  /** The uploaded files, by their key in the body. */
  readonly files: ReadonlyMap<string, Upload>
  /** The hashes of the stored uploads, including uploads to which no row refers yet. */
  readonly kept: Set<string>
  /**
   * Whether the form has the format of another service (`x-bytes`). Its files are read but not
   * stored.
   */
  readonly isBytes?: boolean
  /** Releases the memory reservation of the form. */
  readonly release?: () => void
}

const maxFiles = 20
/**
 * The maximum number of bytes of a text. `longText` applies unless the schema has a longer
 * maxLength; `maxTextLength` applies to any schema.
 */
const [longText, maxTextLength] = [256 * 1024, 1024 * 1024]

/** Returns the upload for a key in the body. Throws when the request has no such upload. */
export function uploaded(ctx: Context, key: string): Upload {
  const upload = ctx.uploads?.files.get(key)
  if (!upload) throw new Error('The body names a file that did not come with it.')
  return upload
}

/**
 * Sends the uploads to a remote file store, before the transaction that stores them. Does nothing
 * in a dry run.
 */
export async function prepareUploads({ dryRun, uploads, services }: Context): Promise<void> {
  if (dryRun || !uploads || uploads.isBytes) return
  for (const upload of new Set(uploads.files.values()))
    if (await services.files.prepare(upload)) uploads.kept.add(upload.sha256)
}

/**
 * Stores the bytes of an upload. Must be called in the transaction that writes the row of the
 * upload. Does nothing in a dry run.
 */
export async function storeUpload(ctx: Context, upload: Upload): Promise<void> {
  if (ctx.dryRun) return
  ctx.uploads?.kept.add(upload.sha256)
  await ctx.services.files.keep(upload)
}

/**
 * Removes the uploads that were not stored. When the request has failed, also removes stored
 * uploads to which no row refers.
 */
export async function cleanUpUploads(ctx: Context, hasFailed: boolean): Promise<void> {
  if (!ctx.uploads) return
  ctx.uploads.release?.()
  const { files, kept } = ctx.uploads
  // Ignores storage errors, because the response is already determined. The next clean-up removes
  // leftover files.
  await bestEffort(async () => {
    for (const upload of files.values()) await ctx.services.files.discard(upload)
    if (hasFailed && kept.size > 0) await ctx.services.sweepFiles(ctx, [...kept])
  })
}

export interface FormLimits {
  /** The Content-Type header, including the boundary. */
  type: string
  /**
   * The maximum number of bytes of all parts together. A request with a larger Content-Length is
   * refused before authentication (routes.ts).
   */
  longest: number
  schema: Shape
}

/**
 * Reads all parts of a form. Throws 400 for a malformed form, 413 when a limit is exceeded, and 503
 * when too much memory is reserved. On an error, removes the files of the form.
 */
export async function receive(ctx: Context, request: Readable, form: FormLimits): Promise<Received> {
  const loan = reserve(ctx.services, ctx.ip ?? '', form.schema['x-bytes'] === true ? formsOfBytes : bodies)
  const release = (): void => loan.release()
  try {
    const received = await read(ctx, request, form, loan)
    return { ...received, uploads: { ...received.uploads, release } }
  } catch (error) {
    release()
    throw error
  }
}

async function read(
  ctx: Context,
  request: Readable,
  { type, longest, schema }: FormLimits,
  loan: Reservation,
): Promise<Received> {
  const fields = new Map<string, FormField>()
  const files = new Map<string, Upload>()
  const field = (sent: string): FormField => {
    const name = sent.replace(/\[\]$/, '')
    const known = fields.get(name) ?? { texts: [], files: [] }
    fields.set(name, known)
    return known
  }
  const shapeOf = (sent: string): Shape | undefined => {
    const name = sent.replace(/\[\]$/, '')
    return Object.hasOwn(schema.properties ?? {}, name) ? schema.properties?.[name] : undefined
  }
  const wants = (sent: string): boolean => isFile(shapeOf(sent))
  const isBytes = schema['x-bytes'] === true
  const empty: string[] = []
  // The files in the body, with the position of their parts. Files are stored concurrently, so they
  // may finish in another order.
  const taken: { place: number; name: string; key: string }[] = []
  let count = 0

  async function take(name: string, stream: Readable, filename: string | undefined): Promise<void> {
    if (!wants(name)) {
      field(name).files.push('')
      stream.resume()
      return
    }
    const place = count++
    const upload = await ctx.services.files.receive(
      stream,
      filename === undefined ? name : asNamed(filename),
      maxFileLength(shapeOf(name)),
    )
    // Browsers send an empty part for a file field without a file.
    const isChosen = upload.size > 0 || (filename !== undefined && filename !== '')
    const key = `${upload.sha256}/${upload.name}`
    if (!isChosen || files.has(key)) await ctx.services.files.discard(upload)
    if (!isChosen) return
    if (upload.size === 0 && !isBytes) empty.push(name.replace(/\[\]$/, ''))
    if (!files.has(key)) files.set(key, upload)
    taken.push({ place, name, key })
  }

  try {
    if (/^application\/x-www-form-urlencoded\b/i.test(type)) {
      const bytes = await bytesOf(request, { longest, loan })
      for (const [name, text] of fieldsOf(bytes, maxParts)) field(name).texts.push(text)
      return { body: readForm(fields, textsOnly(schema)), uploads: { files, kept: new Set() } }
    }
    await eachPart(request, type, {
      most: longest,
      maxFiles: isBytes ? maxParts : maxFiles,
      encoding: isBytes ? 'latin1' : 'utf-8',
      isFile: (name, filename) => wants(name) || filename !== undefined,
      // A UTF-8 character has at most four bytes.
      longest: (name) =>
        isBytes ? longest : Math.min(Math.max(4 * (shapeOf(name)?.maxLength ?? 0), longText), maxTextLength),
      text: (name, value) => field(name).texts.push(value),
      file: take,
      loan: isBytes ? unlimited : loan,
      whole: isBytes ? loan : unlimited,
    })
    for (const { name, key } of taken.sort((one, other) => one.place - other.place)) field(name).files.push(key)
    const { found, ...form } = readForm(fields, schema)
    const isEmpty = empty.map((name) => [name, 'The file is empty.'] as const)
    return { body: { ...form, found: [...found, ...isEmpty] }, uploads: { files, kept: new Set(), isBytes } }
  } catch (error) {
    for (const upload of files.values()) await ctx.services.files.discard(upload)
    throw error
  }
}
