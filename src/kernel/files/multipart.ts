// Reads multipart/form-data (RFC 7578) part by part as it comes in, after it is known who asks and may: files go to the store,
// texts are collected, and what is too much stops the reading. The body a handler gets holds a key for every file.
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
  /** By the key that stands for the file in the body. */
  readonly files: ReadonlyMap<string, Upload>
  /** Hashes of those that were kept. */
  readonly kept: Set<string>
  /** Gives back the memory the form had. */
  readonly release?: () => void
}

const maxFiles = 20
/** Of a text whose schema does not take longer ones, in bytes; and of any. */
const [longText, maxTextLength] = [256 * 1024, 1024 * 1024]

/** The file that a body names. */
export function uploaded(ctx: Context, key: string): Upload {
  const upload = ctx.uploads?.files.get(key)
  if (!upload) throw new Error('The body names a file that did not come with it.')
  return upload
}

/** Keeps the bytes of an upload, in the transaction that writes a row for them. */
export async function storeUpload(ctx: Context, upload: Upload): Promise<void> {
  if (ctx.dryRun) return
  ctx.uploads?.kept.add(upload.sha256)
  await ctx.services.files.keep(upload)
}

/** Removes what the request brought and nobody kept, and what was kept for a row that never came. */
export async function cleanUpUploads(ctx: Context, hasFailed: boolean): Promise<void> {
  if (!ctx.uploads) return
  ctx.uploads.release?.()
  const { files, kept } = ctx.uploads
  // What cannot be removed now is, with the next look at what nobody refers to; what is answered is decided already.
  await bestEffort(async () => {
    for (const upload of files.values()) await ctx.services.files.discard(upload)
    if (hasFailed && kept.size > 0) await ctx.services.sweepFiles(ctx, [...kept])
  })
}

export interface Form {
  /** The Content-Type, with the boundary. */
  type: string
  /** Of all parts together; what says beforehand that it is more is refused before it is known who asks (routes.ts). */
  longest: number
  schema: Shape
}

/** Reads all parts. Throws 400 for what is no form, 413 for too much of anything, 503; then nothing is left behind. */
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
  // Parts are stored side by side; a list keeps the order in which they were sent.
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
    // What a browser sends for a field of a form in which no file was chosen.
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
      // A character has four bytes at most.
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
