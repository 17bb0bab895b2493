// Sends replies that are not JSON. A handler returns `download({ mediaType, body, … })`; this file
// adds file name, length and ETag. Where the contract lists status 206, this file also serves a
// single range of bytes (RFC 9110).
import { Readable } from 'node:stream'
import { create } from 'content-disposition'
import { Download, type DownloadParts, type Source } from '../../contract/output/download.ts'
import type { Answered } from '../../contract/routes.ts'
import type { OperationFact } from '../../contract/types.ts'
import type { Context } from '../context.ts'
import { Problem } from '../errors.ts'
import { byteTag, matches } from '../write/etag.ts'

export { Download, type DownloadParts, type Source } from '../../contract/output/download.ts'

export const download = (parts: DownloadParts): Download => new Download(parts)

/**
 * Returns the response for a download. Throws 416 for a range that begins after the end of the
 * body.
 */
export function answerDownload(ctx: Context, fact: OperationFact, method: string, { parts }: Download): Answered {
  const { mediaType } = parts
  const headers: Record<string, string> = { ...parts.headers }
  const etag = tagOf(fact, parts)
  if (etag !== undefined) {
    headers.etag = etag
    const known = single(ctx.headers['if-none-match'])
    if (known !== undefined && matches(known, etag)) return { status: 304, headers, body: undefined, mediaType }
  }
  if (parts.name !== undefined || parts.disposition !== undefined) headers['content-disposition'] = disposition(parts)
  const source = sourceOf(parts.body)
  const size = source?.size ?? parts.size
  if (size !== undefined) headers['content-length'] = String(size)
  const isRangeable = source !== undefined && fact.statuses.includes(206)
  if (isRangeable) headers['accept-ranges'] = 'bytes'
  if (method === 'HEAD') {
    discard(parts.body)
    return { status: fact.status, headers, body: Readable.from([]), mediaType }
  }
  const range = isRangeable ? rangeOf(ctx, source.size, etag) : undefined
  if (!range || !source) return { status: fact.status, headers, body: streamOf(parts.body), mediaType }
  const [from, to] = range
  return {
    status: 206,
    headers: {
      ...headers,
      'content-length': String(to - from + 1),
      'content-range': `bytes ${from}-${to}/${source.size}`,
    },
    body: source.read(from, to),
    mediaType,
  }
}

/**
 * Returns the ETag of a text or a buffer, where the contract has one. The reply to a write
 * has none, because it cannot be requested again.
 */
function tagOf({ statuses }: OperationFact, { body, etag }: DownloadParts): string | undefined {
  if (!statuses.includes(304)) return undefined
  return etag ?? (typeof body === 'string' || Buffer.isBuffer(body) ? byteTag(body) : undefined)
}

/**
 * Returns the Content-Disposition header with the file name in ASCII. A name with other characters
 * is also sent in UTF-8 (RFC 6266). Path separators are replaced.
 */
function disposition({ name, disposition: type = 'attachment' }: DownloadParts): string {
  const safe = name?.replaceAll(/\p{Surrogate}|\p{Cc}|[/\\]/gu, '_')
  const fallback = safe
    ?.normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/[^\x20-\x7e]|[%"]/g, '_')
  return create(safe, { type, ...(fallback !== undefined && { fallback }) })
}

const isSource = (body: DownloadParts['body']): body is Source =>
  typeof body === 'object' && 'read' in body && 'size' in body && !(body instanceof Readable)

/**
 * Returns the body as a source, which can be read from any offset. Returns undefined for a stream.
 */
function sourceOf(body: DownloadParts['body']): Source | undefined {
  if (typeof body === 'string' || Buffer.isBuffer(body)) {
    const bytes = Buffer.from(body)
    return { size: bytes.length, read: (from, to) => Readable.from([bytes.subarray(from, to + 1)]) }
  }
  return isSource(body) ? body : undefined
}

/** Returns all bytes of a source. An empty source is not read, because it has no valid range. */
export const readAll = ({ size, read }: Source): Readable => (size === 0 ? Readable.from([]) : read(0, size - 1))

function streamOf(body: DownloadParts['body']): Answered['body'] {
  if (typeof body === 'string' || Buffer.isBuffer(body) || body instanceof Readable) return body
  if (!isSource(body)) return Readable.from(body, { objectMode: false })
  return body.size === 0 ? Buffer.alloc(0) : body.read(0, body.size - 1)
}

/**
 * Closes a body that is not sent, because an open body may keep a file or a database connection
 * open.
 */
function discard(body: DownloadParts['body']): void {
  if (body instanceof Readable) body.destroy()
  else if (typeof body === 'object' && Symbol.asyncIterator in body) void body[Symbol.asyncIterator]().return?.()
}

/**
 * Returns the positions of the first and last requested byte; undefined for the whole body. Ignores
 * several ranges, other units and malformed ranges. Also ignores a range when If-Range names
 * another version.
 */
function rangeOf(ctx: Context, size: number, etag: string | undefined): [number, number] | undefined {
  const asked = /^bytes=(\d*)-(\d*)$/i.exec(single(ctx.headers.range)?.replaceAll(/\s/g, '') ?? '')
  const [, first = '', last = ''] = asked ?? []
  if (first === '' && last === '') return undefined
  const condition = single(ctx.headers['if-range'])
  if (condition !== undefined && condition.trim() !== etag) return undefined
  if (first !== '' && last !== '' && Number(last) < Number(first)) return undefined
  const from = first === '' ? Math.max(0, size - Number(last)) : Number(first)
  const to = first === '' || last === '' ? size - 1 : Math.min(Number(last), size - 1)
  if (from <= to) return [from, to]
  throw new Problem('range_not_satisfiable', `There are ${size} bytes.`, {
    headers: { 'content-range': `bytes */${size}` },
  })
}

const single = (header: string | string[] | undefined): string | undefined =>
  Array.isArray(header) ? header.join(', ') : header
