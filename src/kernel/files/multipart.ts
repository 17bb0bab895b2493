// Reads multipart/form-data (RFC 7578) after authentication, part by part: files go to the file
// store, texts are collected, and reading stops at a limit. In the body that the handler gets, a
// key stands for each file.
import type { Readable } from 'node:stream'
import type { Body } from '../../contract/input/body.ts'
import { type Field, isFile, maxFileLength, readForm } from '../../contract/input/form.ts'
import type { Shape } from '../../contract/input/normalize.ts'
import type { Context } from '../context.ts'
import { bestEffort } from '../runtime/unavailable.ts'
import { bodies, formsOfBytes, free, type Reservation, reserve } from './body-memory-budget.ts'
import type { Upload } from './file-store.ts'
import { bytesOf, eachPart, maxParts } from './multipart-parts.ts'
import { asNamed, fieldsOf, textsOnly } from './urlencoded-bytes.ts'

type Received = { body: Body; uploads: Uploads }
/** The files of one request. */
export interface Uploads {
  /** The uploaded files, by their key in the body. */
  readonly files: ReadonlyMap<string, Upload>
  /** The hashes of the stored files. */
  readonly kept: Set<string>
  /** Releases the memory of the form. */
  readonly release?: () => void
}

const maxFiles = 20
/** The maximum bytes of a text: for a schema without a longer maxLength, and for any schema. */
const [longText, maxTextLength] = [256 * 1024, 1024 * 1024]

/** Returns the upload for a key of the body. */
export function uploaded(ctx: Context, key: string): Upload {
  const upload = ctx.uploads?.files.get(key)
  if (!upload) throw new Error('The body names a file that did not come with it.')
  return upload
}

/** Stores an upload, in the transaction that writes its row. */
export async function storeUpload(ctx: Context, upload: Upload): Promise<void> {
  if (ctx.dryRun) return
  ctx.uploads?.kept.add(upload.sha256)
  await ctx.services.files.keep(upload)
}

/** Removes uploads that were not stored, and stored ones whose transaction was rolled back. */
export async function cleanUpUploads(ctx: Context, hasFailed: boolean): Promise<void> {
  if (!ctx.uploads) return
  ctx.uploads.release?.()
  const { files, kept } = ctx.uploads
  // Best effort: leftovers are removed by the next orphan sweep; the response is already decided.
  await bestEffort(async () => {
    for (const upload of files.values()) await ctx.services.files.discard(upload)
    if (hasFailed && kept.size > 0) await ctx.services.sweepFiles(ctx, [...kept])
  })
}

export interface Form {
  /** The Content-Type header, including the boundary. */
  type: string
  /**
   * The maximum bytes of all parts together. A larger Content-Length is refused before
   * authentication (routes.ts).
   */
  longest: number
  schema: Shape
}

/**
 * Reads all parts. Throws 400 for a malformed form, 413 beyond a limit, or 503. On an error it
 * removes the form's files.
 */
export async function receive(ctx: Context, request: Readable, form: Form): Promise<Received> {
  const loan = reserve(ctx.services, ctx.ip ?? '', form.schema['x-bytes'] === true ? formsOfBytes : bodies)
  const release = (): void => loan.giveBack()
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
  { type, longest, schema }: Form,
  loan: Reservation,
): Promise<Received> {
  const fields = new Map<string, Field>()
  const files = new Map<string, Upload>()
  const field = (sent: string): Field => {
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
  // Files are stored concurrently; the list keeps the order of the parts.
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
      loan: isBytes ? free : loan,
      whole: isBytes ? loan : free,
    })
    for (const { name, key } of taken.sort((one, other) => one.place - other.place)) field(name).files.push(key)
    const { found, ...form } = readForm(fields, schema)
    const isEmpty = empty.map((name) => [name, 'The file is empty.'] as const)
    return { body: { ...form, found: [...found, ...isEmpty] }, uploads: { files, kept: new Set() } }
  } catch (error) {
    for (const upload of files.values()) await ctx.services.files.discard(upload)
    throw error
  }
}
