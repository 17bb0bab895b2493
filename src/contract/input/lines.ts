// Reads a body of many lines: JSON lines (NDJSON) as they arrive, or the entries of a JSON list.
import type { Call } from '../call.ts'
import type { OperationFact } from '../operations.gen.ts'
import { Problem } from '../output/problems.ts'
import { decode, mediaTypeOf, mediaTypes, parseJson } from './body.ts'
import type { SentLine, SentLines } from './sent.ts'
import { maxValues } from './value-count.ts'

export const linesType = 'application/x-ndjson'

/** Returns whether the body of an operation consists of lines, which its handler reads itself. */
export const takesLines = ({ consumes }: Pick<OperationFact, 'consumes'>): boolean => consumes.includes(linesType)

const maxLineLength = 1024 * 1024
const maxEntries = 1000

/**
 * Returns the lines of the body. Throws 415 for another media type, and 400 or 422 for a JSON body
 * that has no list, or more than `maxEntries` entries.
 */
export function linesOf(call: Pick<Call, 'headers' | 'fact' | 'stream' | 'body'>): SentLines {
  const { fact, stream, body } = call
  const type = mediaTypeOf(call)
  if (type === linesType) return stream ? splitLines(stream) : splitLines([])
  if (type === undefined || !fact.consumes.includes(type)) throw new Problem('unsupported_media_type', mediaTypes(fact))
  if (body === undefined || body.length === 0)
    throw new Problem('malformed_json', 'The body is empty; a JSON list is needed.')
  const entries = entriesOf(decode(body)).map((text, index) => lineOf(index + 1, Buffer.from(text)))
  if (entries.length > maxEntries) {
    const sentence = `Must not have more than ${maxEntries} entries; send more as ${linesType}.`
    throw new Problem('validation_failed', undefined, { errors: { body: [sentence] } })
  }
  return readEntries(entries)
}

async function* readEntries(entries: readonly SentLine[]): SentLines {
  if (entries.length > 0) yield entries
}

const [newline, carriageReturn, blank, tab] = [10, 13, 32, 9]

/** Thrown when the connection is closed before the end of the body. */
export class BodyCut extends Error {}

/**
 * Splits a stream into lines. Throws `BodyCut` instead of returning a last line that may be cut.
 */
export async function* splitLines(stream: AsyncIterable<Buffer> | Iterable<Buffer>): SentLines {
  let parts: Buffer[] = []
  let length = 0
  let number = 0
  const add = (part: Buffer): void => {
    length += part.length
    if (length <= maxLineLength) parts.push(part)
    else parts = []
  }
  const take = (): SentLine[] => {
    if (number === 0 && parts[0]) parts = [withoutMark(parts)]
    const line = length > maxLineLength ? tooLong(++number, length) : lineOf(++number, trimmed(parts))
    parts = []
    length = 0
    return line.bytes.length === 0 ? [] : [line]
  }
  try {
    for await (const chunk of withoutDestroying(stream)) {
      const lines: SentLine[] = []
      let from = 0
      for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, from)) {
        add(chunk.subarray(from, end))
        lines.push(...take())
        from = end + 1
      }
      if (from < chunk.length) add(chunk.subarray(from))
      if (lines.length > 0) yield lines
    }
  } catch (error) {
    throw isCut(error) ? new BodyCut('The connection was closed before the body was complete.') : error
  }
  const last = length > 0 ? take() : []
  if (last.length > 0) yield last
}

/** Reads a request without closing its connection at the end, over which the answer is sent. */
const withoutDestroying = (
  stream: AsyncIterable<Buffer> | Iterable<Buffer>,
): AsyncIterable<Buffer> | Iterable<Buffer> =>
  'iterator' in stream && typeof stream.iterator === 'function' ? stream.iterator({ destroyOnReturn: false }) : stream

const isCut = (error: unknown): boolean =>
  ['ECONNRESET', 'ERR_STREAM_PREMATURE_CLOSE', 'ERR_STREAM_DESTROYED'].includes(
    (error as NodeJS.ErrnoException).code ?? '',
  )

const byteOrderMark = Buffer.from('\ufeff')

/** Joins the parts of the first line, without the mark by which some programs begin a file. */
function withoutMark(parts: readonly Buffer[]): Buffer {
  const line = Buffer.concat(parts)
  return line.subarray(0, 3).equals(byteOrderMark) ? line.subarray(3) : line
}

/** Joins the parts of a line, without the blanks and the carriage return around it. */
function trimmed(parts: readonly Buffer[]): Buffer {
  const line = parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts)
  const isBlank = (byte: number | undefined): boolean => byte === blank || byte === tab || byte === carriageReturn
  let [from, to] = [0, line.length]
  while (to > from && isBlank(line[to - 1])) to--
  while (from < to && isBlank(line[from])) from++
  return line.subarray(from, to)
}

const lineOf = (number: number, bytes: Buffer): SentLine => ({
  number,
  bytes,
  read() {
    const read = parseJson(decode(bytes), maxValues)
    if (Array.isArray(read.value)) throw new Problem('malformed_json', 'A line must be one JSON object.')
    return read
  },
})

const tooLong = (number: number, length: number): SentLine => ({
  number,
  bytes: Buffer.from(`${length}`),
  read() {
    throw new Problem('payload_too_large', `The line has more than ${maxLineLength} bytes.`)
  },
})

/**
 * Returns the texts of the entries of a JSON list. Only the commas and brackets of the list are
 * checked, because each entry is parsed later.
 */
function entriesOf(text: string): string[] {
  const list = text.trim()
  if (!list.startsWith('[') || !list.endsWith(']') || list.length < 2)
    throw new Problem('malformed_json', 'The body is not a JSON list.')
  const entries: string[] = []
  let depth = 0
  let from = 1
  for (let at = 1; at < list.length - 1; at++) {
    const char = list[at]
    if (char === '"') at = endOfString(list, at)
    else if (char === '{' || char === '[') depth++
    else if (char === '}' || char === ']') depth--
    else if (char === ',' && depth === 0) {
      entries.push(list.slice(from, at))
      from = at + 1
    }
    if (depth < 0) break
  }
  if (depth !== 0) throw new Problem('malformed_json', 'The body is not valid JSON.')
  const last = list.slice(from, -1)
  return entries.length === 0 && last.trim() === '' ? [] : [...entries, last]
}

function endOfString(text: string, opening: number): number {
  for (let at = opening + 1; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === '"') return at
  }
  return text.length
}
