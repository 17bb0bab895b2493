// Reads a multipart form part by part (RFC 7578). Stops at the first exceeded limit or syntax
// error. multipart.ts interprets the parts.
import type { Readable } from 'node:stream'
import { Busboy, type BusboyInstance } from '@fastify/busboy'
import { formText } from '../../contract/input/form-text.ts'
import { Problem } from '../errors.ts'
import { budgetExceeded, type Reservation } from './body-memory-budget.ts'
import { tooLarge } from './file-store.ts'
import { utf8PartHeaders } from './part-headers.ts'

export const maxParts = 200
const maxNameLength = 100

export interface PartHandler {
  /** The maximum number of bytes of all parts together. */
  most: number
  maxFiles: number
  encoding: Encoding
  isFile(name: string, filename: string | undefined): boolean
  /** Returns the maximum number of bytes of the text in the field `name`. */
  longest(name: string): number
  text(name: string, value: string): void
  /**
   * The memory reservation for texts. Files need none, because they are written to disk as they
   * arrive.
   */
  loan: Reservation
  /**
   * The memory reservation for the whole form. Used for forms whose files are also handled in
   * memory.
   */
  whole: Reservation
  file(name: string, stream: Readable, filename: string | undefined): Promise<void>
}

export async function eachPart(request: Readable, contentType: string, parts: PartHandler): Promise<void> {
  const form = parser(contentType)
  const reading = new Set<Readable>()
  const taking: Promise<void>[] = []
  let fileCount = 0
  let total = 0
  let refuse: (reason: unknown) => void = () => undefined

  async function take(name: string | undefined, stream: Readable, filename: string | undefined): Promise<void> {
    if (name === undefined || name.length > maxNameLength)
      throw malformed('a part has no name, or one that is too long')
    if (!parts.isFile(name, filename))
      return parts.text(
        name,
        decoded(await bytesOf(stream, { longest: parts.longest(name), name, loan: parts.loan }), parts.encoding),
      )
    if (++fileCount > parts.maxFiles) throw tooMany()
    await parts.file(name, stream, filename)
  }

  const isDone = new Promise<void>((resolve, reject) => {
    refuse = reject
    form.on('file', (name: string | undefined, stream, filename: string | undefined) => {
      // The function that reads the part also handles its error. Without this listener the error
      // would end the process.
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
    else if (!parts.whole.grow(chunk.length)) refuse(budgetExceeded())
  }
  // Ignores a close after the whole request was read: the connection may close while the last bytes
  // are still being written to disk.
  const onClose = (): void => {
    if (!request.readableEnded) refuse(malformed('it ended early'))
  }
  request.on('data', onData).on('error', onClose).on('close', onClose)
  const headers = utf8PartHeaders(contentType)
  request.pipe(headers).pipe(form)
  try {
    await isDone
    await Promise.all(taking)
  } catch (error) {
    request.unpipe(headers)
    headers.unpipe(form).destroy()
    form.on('error', () => undefined).destroy()
    for (const stream of reading) stream.destroy(new Error('The form was refused.'))
    await Promise.allSettled(taking)
    throw error
  } finally {
    request.off('data', onData).off('close', onClose)
    // Discards the unread bytes, so that the connection can be reused.
    request.resume()
  }
}

/**
 * Returns a parser that passes on every part as a stream, including texts. The caller checks the
 * limits of texts and decodes them.
 */
function parser(contentType: string): BusboyInstance {
  try {
    const limits = { files: maxParts, parts: maxParts, headerPairs: 20, headerSize: 16 * 1024 }
    return new Busboy({ headers: { 'content-type': contentType }, limits, isPartAFile: () => true })
  } catch (cause) {
    throw malformed('its Content-Type names no boundary', cause)
  }
}

export async function bytesOf(
  stream: Readable,
  { longest, name, loan }: { longest: number; name?: string; loan: Reservation },
): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > longest) throw name === undefined ? tooLarge(longest) : tooLong(name)
    if (!loan.grow(chunk.length)) throw budgetExceeded()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

type Encoding = 'utf-8' | 'latin1'

function decoded(bytes: Buffer, encoding: Encoding): string {
  return encoding === 'latin1' ? bytes.toString(encoding) : formText(bytes)
}

const tooMany = (): Problem => new Problem('payload_too_large', 'The form has too many parts.')
const tooLong = (name: string): Problem => new Problem('payload_too_large', `The field ${name} is too long.`)
const malformed = (why: string, cause?: unknown): Problem =>
  new Problem('malformed_request', `The form could not be read: ${why}.`, { cause })
