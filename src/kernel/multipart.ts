// Reads multipart/form-data (RFC 7578) part by part as it comes in, after it is known who asks and may: files go to the store,
// texts are collected, and what is too much stops the reading. The body a handler gets holds a key for every file.
import type { Readable } from 'node:stream'
import { Busboy, type BusboyInstance } from '@fastify/busboy'
import type { Body } from '../contract/body.ts'
import { type Field, isFile, longestFile, readForm } from '../contract/form.ts'
import type { Shape } from '../contract/normalise.ts'
import type { Context } from './context.ts'
import { Problem } from './errors.ts'
import { tooLarge, type Upload } from './files.ts'
import { hold } from './held.ts'
import { fieldsOf, textsOnly } from './plainform.ts'

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

const mostParts = 200
const mostFiles = 20
const longestName = 100
/** Of a text whose schema does not take longer ones, in bytes; and of any. */
const [longText, longestText] = [256 * 1024, 1024 * 1024]

/** The file that a body names. */
export function uploaded(ctx: Context, key: string): Upload {
  const upload = ctx.uploads?.files.get(key)
  if (!upload) throw new Error('The body names a file that did not come with it.')
  return upload
}

/** Keeps the bytes of an upload, in the transaction that writes a row for them. */
export async function keep(ctx: Context, upload: Upload): Promise<void> {
  if (ctx.dryRun) return
  ctx.uploads?.kept.add(upload.sha256)
  await ctx.services.files.keep(upload)
}

/** Removes what the request brought and nobody kept, and what was kept for a row that never came. */
export async function leave(ctx: Context, hasFailed: boolean): Promise<void> {
  if (!ctx.uploads) return
  ctx.uploads.release?.()
  const { files, kept } = ctx.uploads
  for (const upload of files.values()) await ctx.services.files.discard(upload)
  if (hasFailed && kept.size > 0) await ctx.services.sweepFiles(ctx, [...kept])
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
  const release = hold(ctx, form)
  try {
    const received = await read(ctx, request, form)
    return { ...received, uploads: { ...received.uploads, release } }
  } catch (error) {
    release()
    throw error
  }
}

async function read(ctx: Context, request: Readable, { type, longest, schema }: Form): Promise<Received> {
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
      longestFile(shapeOf(name)),
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
      for (const [name, text] of fieldsOf(await bytesOf(request, longest), mostParts)) field(name).texts.push(text)
      return { body: readForm(fields, textsOnly(schema)), uploads: { files, kept: new Set() } }
    }
    await eachPart(request, type, {
      most: longest,
      mostFiles: isBytes ? mostParts : mostFiles,
      encoding: isBytes ? 'latin1' : 'utf-8',
      isFile: (name, filename) => wants(name) || filename !== undefined,
      // A character has four bytes at most.
      longest: (name) =>
        isBytes ? longest : Math.min(Math.max(4 * (shapeOf(name)?.maxLength ?? 0), longText), longestText),
      text: (name, value) => field(name).texts.push(value),
      file: take,
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

/** Browsers write what would end a quoted name as bytes in hexadecimal. */
const asNamed = (filename: string): string =>
  filename.replaceAll(/%(22|0D|0A)/gi, (_all, byte: string) => (byte === '22' ? '"' : ''))

interface Parts {
  /** Bytes of all parts, and number of files. */
  most: number
  mostFiles: number
  encoding: Encoding
  isFile(name: string, filename: string | undefined): boolean
  /** How many bytes a text can have. */
  longest(name: string): number
  text(name: string, value: string): void
  file(name: string, stream: Readable, filename: string | undefined): Promise<void>
}

async function eachPart(request: Readable, contentType: string, parts: Parts): Promise<void> {
  const form = parser(contentType)
  const reading = new Set<Readable>()
  const taking: Promise<void>[] = []
  let fileCount = 0
  let total = 0
  let refuse: (reason: unknown) => void = () => undefined

  async function take(name: string | undefined, stream: Readable, filename: string | undefined): Promise<void> {
    if (name === undefined || name.length > longestName) throw malformed('a part has no name, or one that is too long')
    if (!parts.isFile(name, filename))
      return parts.text(name, decoded(await bytesOf(stream, parts.longest(name), name), parts.encoding))
    if (++fileCount > parts.mostFiles) throw tooMany()
    await parts.file(name, stream, filename)
  }

  const isDone = new Promise<void>((resolve, reject) => {
    refuse = reject
    form.on('file', (name: string | undefined, stream, filename: string | undefined) => {
      // Whoever reads it hears of it; an error nobody listens to would end the process.
      stream.on('error', () => undefined)
      reading.add(stream)
      const taken = take(name, stream, filename).finally(() => reading.delete(stream))
      taken.catch(reject)
      taking.push(taken)
    })
    form.on('partsLimit', () => reject(tooMany()))
    form.on('filesLimit', () => reject(tooMany()))
    form.on('error', (cause) => reject(malformed('its parts cannot be told apart', cause)))
    form.on('finish', resolve)
  })
  const onData = (chunk: Buffer): void => {
    total += chunk.length
    if (total > parts.most) refuse(tooLarge(parts.most))
  }
  // A connection also closes behind a request that is complete, while its last bytes are still on their way to the disk.
  const onClose = (): void => {
    if (!request.readableEnded) refuse(malformed('it ended early'))
  }
  request.on('data', onData).on('error', onClose).on('close', onClose)
  request.pipe(form)
  try {
    await isDone
    await Promise.all(taking)
  } catch (error) {
    request.unpipe(form)
    form.on('error', () => undefined).destroy()
    for (const stream of reading) stream.destroy(new Error('The form was refused.'))
    await Promise.allSettled(taking)
    throw error
  } finally {
    request.off('data', onData).off('close', onClose)
    // The rest is of no interest, but the connection can be used again.
    request.resume()
  }
}

/** Every part is given as a stream: texts have limits of their own, and must be UTF-8 whatever the part says. */
function parser(contentType: string): BusboyInstance {
  try {
    const limits = { files: mostParts, parts: mostParts, headerPairs: 20, headerSize: 16 * 1024 }
    return new Busboy({ headers: { 'content-type': contentType }, limits, isPartAFile: () => true })
  } catch (cause) {
    throw malformed('its Content-Type names no boundary', cause)
  }
}

async function bytesOf(stream: Readable, longest: number, name?: string): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > longest) throw name === undefined ? tooLarge(longest) : tooLong(name)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

type Encoding = 'utf-8' | 'latin1'

function decoded(bytes: Buffer, encoding: Encoding): string {
  if (encoding === 'latin1') return bytes.toString(encoding)
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes)
  } catch (cause) {
    throw malformed('a text is not valid UTF-8', cause)
  }
}

const tooMany = (): Problem => new Problem('payload_too_large', 'The form has too many parts.')
const tooLong = (name: string): Problem => new Problem('payload_too_large', `The field ${name} is too long.`)
const malformed = (why: string, cause?: unknown): Problem =>
  new Problem('malformed_request', `The form could not be read: ${why}.`, { cause })
