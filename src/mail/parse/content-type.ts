// Mends the Content-Type header of an e-mail that the parser could not read, and joins the lines of
// flowed text (RFC 3676), whose quotations the parser does not know.

import { isUtf8 } from 'node:buffer'
import { decodeMailText, standInFor } from './text-decoder.ts'

const headerLimit = 256 * 1024
const contentType = /^content-type:[^\n]*(\n[ \t][^\n]*)*/im
const contentTypes = /^content-type:[^\n]*(\n[ \t][^\n]*)*/gim
/** Matches the headers of a part, behind the line of a boundary. */
const partHeaders = /(?<=^--[^\r\n]{1,70}\r?\n)(?:[!-9;-~]{1,76}:[^\n]*\n(?:[ \t][^\n]*\n)*)+(?=\r?\n)/gim

/**
 * Returns the bytes with a Content-Type that can be read: text/plain instead of a value that is no
 * media type (RFC 2045, 5.2), and the boundary of the body for a multipart that names none. The
 * lines of flowed text are left to `joinFlowedLines`.
 */
export function withReadableType(given: Uint8Array): Uint8Array {
  const bytes = withKnownCharsets(withUtf8Headers(given))
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const text = buffer.toString('latin1', 0, headerLimit)
  const end = /\r?\n\r?\n/.exec(text)
  if (!end) return bytes
  const header = contentType.exec(text.slice(0, end.index))
  if (!header) return bytes
  const value = header[0].slice('content-type:'.length).trim().replace(/;$/, '')
  const isMultipart = /^multipart\//i.test(value)
  const flow = isMultipart ? flowOfParts(text.slice(end.index)) : null
  const whole = isMultipart ? withBoundary(value, text.slice(end.index)) : (withoutFlow(value) ?? withMediaType(value))
  if (whole === null && flow === null) return bytes
  const from = header.index
  const head = Buffer.from(`Content-Type: ${whole ?? value}${flow ?? ''}`, 'latin1')
  const rest = buffer.subarray(from + header[0].length)
  return Buffer.concat([buffer.subarray(0, from), head, flow === null ? rest : withoutFlowInParts(rest)])
}

/**
 * Recodes headers with plain bytes in another charset than UTF-8 (RFC 5322 allows none). They have
 * the charset of the body, or else that of its first part.
 */
function withUtf8Headers(bytes: Uint8Array): Uint8Array {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const text = buffer.toString('latin1', 0, headerLimit)
  const end = /\r?\n\r?\n/.exec(text)?.index ?? text.length
  const headers = buffer.subarray(0, end)
  if (isUtf8(headers)) return bytes
  const types = [contentType.exec(text.slice(0, end)), contentType.exec(text.slice(end, end + 16 * 1024))]
  const named = types.flatMap((type) => type?.[0].match(charsetParameter) ?? [])[0] ?? 'utf-8'
  // The names of headers are ASCII, which these charsets do not contain.
  const label = /^(utf-?(7|16|32)|ucs|iso-2022|hz|unicode)/i.test(named) ? 'utf-8' : named
  return Buffer.concat([Buffer.from(decodeMailText(headers, label)), buffer.subarray(end)])
}

const charsetParameter = /(?<=[;\s]charset\s{0,9}=\s{0,9}"?)[\w.:-]{2,40}/gi

/** Replaces the labels of charsets that the parser does not know, in the headers of all parts. */
function withKnownCharsets(bytes: Uint8Array): Uint8Array {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const text = buffer.toString('latin1', 0, headerLimit)
  const replaceIn = (headers: string): string =>
    headers.replace(contentTypes, (type) => type.replace(charsetParameter, (label) => standInFor(label) ?? label))
  const end = /\r?\n\r?\n/.exec(text)?.index ?? text.length
  const mended = replaceIn(text.slice(0, end)) + text.slice(end).replace(partHeaders, replaceIn)
  return mended === text ? bytes : Buffer.concat([Buffer.from(mended, 'latin1'), buffer.subarray(text.length)])
}

/**
 * Returns the parameters of flowed text for the header of a multipart, or null unless each of its
 * plain texts is flowed.
 */
function flowOfParts(body: string): string | null {
  const types = [...body.matchAll(partHeaders)].flatMap(([headers]) => contentType.exec(headers)?.[0] ?? [])
  const plain = types
    .map((type) => type.slice('content-type:'.length))
    .filter((type) => /^\s*text\/plain\b/i.test(type))
  if (plain.length === 0 || !plain.every(isFlowedText)) return null
  return `; x-format=flowed${plain.some((type) => delSp.test(type)) ? '; delsp=yes' : ''}`
}

/** Names another format in the headers of the parts. The lengths of the lines do not matter. */
function withoutFlowInParts(body: Buffer): Buffer {
  const text = body.toString('latin1', 0, headerLimit)
  const mended = text.replace(partHeaders, (headers) => headers.replace(flowParameter, 'format=fixed'))
  return Buffer.concat([Buffer.from(mended, 'latin1'), body.subarray(text.length)])
}

function withBoundary(value: string, body: string): string | null {
  if (/\bboundary\b/i.test(value)) return null
  const boundary = /\n--([\w'()+,./:=?-]{1,70})\r?\n/.exec(body)?.[1]
  return boundary === undefined ? null : `${value}; boundary="${boundary}"`
}

const withMediaType = (value: string): string | null =>
  /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+/.test(value) ? null : 'text/plain'

/** Names another format, so that the parser leaves the lines to `joinFlowedLines`. */
const withoutFlow = (value: string): string | null =>
  isFlowedText(value) ? value.replace(flowParameter, 'format=fixed; x-format=flowed') : null

const flowParameter = /format\s{0,9}=\s{0,9}"?flowed"?/i
const delSp = /[;\s]delsp\s{0,9}=\s{0,9}"?yes\b/i

export const isFlowedText = (contentType: string): boolean =>
  /^\s{0,9}text\/plain\b/i.test(contentType) && /[;\s]format\s{0,9}=\s{0,9}"?flowed\b/i.test(contentType)

/** Returns whether `withReadableType` has left the lines of a flowed text apart. */
export const hasFlowedLines = (contentType: string): boolean => contentType.includes('x-format=flowed')

/** Joins the lines of flowed text. Lines are joined only within one depth of quotation. */
export function joinFlowedLines(text: string, type: string): string {
  const isDelSp = delSp.test(type)
  const joined: string[] = []
  let open: { depth: number; parts: string[] } | null = null
  const close = (): void => {
    if (open)
      joined.push(`${'>'.repeat(open.depth)}${open.depth > 0 && open.parts[0] !== '' ? ' ' : ''}${open.parts.join('')}`)
    open = null
  }
  for (const line of text.split(/\r?\n/)) {
    const depth = /^>*/.exec(line)?.[0].length ?? 0
    const content = line.slice(depth).replace(/^ /, '')
    const before = open as { depth: number; parts: string[] } | null
    if (before !== null && (before.depth !== depth || content === '-- ')) close()
    const current: { depth: number; parts: string[] } = (open as typeof before) ?? { depth, parts: [] }
    open = current
    const isSoft = content.endsWith(' ') && content !== '-- '
    current.parts.push(isSoft && isDelSp ? content.slice(0, -1) : content)
    if (!isSoft) close()
  }
  close()
  return joined.join('\n')
}
