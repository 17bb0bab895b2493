// Decodes the text of received e-mails. Browsers and mail programs decode more than the labels of
// RFC 2045 say, and the TextDecoder of some Node versions decodes windows-1252 as ISO-8859-1.
// iconv-lite has the correct tables, also those of old Macs and of MS-DOS.
import { isUtf8 } from 'node:buffer'
import iconv from 'iconv-lite'

/** Labels that mean another encoding, as in the WHATWG Encoding Standard. */
const aliases: Readonly<Record<string, string>> = {
  'iso-8859-1': 'windows-1252',
  'iso8859-1': 'windows-1252',
  latin1: 'windows-1252',
  ascii: 'windows-1252',
  'us-ascii': 'windows-1252',
  'ansi_x3.4-1968': 'windows-1252',
  'iso-8859-9': 'windows-1254',
  'iso-8859-11': 'windows-874',
  'tis-620': 'windows-874',
  'iso-8859-8-i': 'iso-8859-8',
  'iso-8859-8-e': 'iso-8859-8',
  'x-mac-roman': 'macroman',
  'x-mac-cyrillic': 'maccyrillic',
  macintosh: 'macroman',
  'ks_c_5601-1987': 'cp949',
  'euc-kr': 'cp949',
  gb2312: 'gb18030',
  gbk: 'gb18030',
  'x-sjis': 'shift_jis',
  'windows-31j': 'shift_jis',
}

/**
 * Labels that no mail program writes. The parser turns away labels outside the WHATWG Encoding
 * Standard, such as cp850 and utf-7. Such a label is replaced before the e-mail is parsed.
 */
const standIns = ['csisolatin6', 'iso-ir-157', 'l6', 'iso-ir-109', 'l3', 'csisolatin4', 'iso-ir-110', 'l4']
const replaced = new Map<string, string>()

/**
 * Returns the label that the parser gets instead of a label that it does not know. Returns null
 * when the parser knows the label, or when no table exists for it. The process reads one e-mail, so
 * that a few labels suffice.
 */
export function standInFor(label: string): string | null {
  const plain = label.toLowerCase()
  if (isStandard(plain) || encodingOf(plain) !== plain) return null
  const known = [...replaced].find(([, meant]) => meant === plain)?.[0]
  const free = known ?? standIns[replaced.size]
  if (free !== undefined) replaced.set(free, plain)
  return free ?? null
}

function isStandard(label: string): boolean {
  try {
    return new NodeTextDecoder(label) !== null
  } catch {
    return false
  }
}

/** Encodings of several bytes for a character. Short texts in them can be valid UTF-8. */
const isMultiByte = /^(gb|big5|shift_?jis|sjis|euc|cp9(32|36|49|50)|iso-2022|utf-?(7|16|32)|hz)/

/** Returns the name of an encoding that can be decoded; UTF-8 for an unknown label. */
function encodingOf(label: string): string {
  const plain = label
    .toLowerCase()
    .replaceAll(/[\s"';]/g, '')
    .slice(0, 40)
  const meant = replaced.get(plain) ?? plain
  const name = aliases[meant] ?? meant
  const isText = !/^(base64|hex|binary|internal.*)$/.test(name)
  return (isText && iconv.encodingExists(name)) || name === 'iso-2022-jp' ? name : 'utf-8'
}

// The decoders of Node. The process that parses e-mails replaces the global TextDecoder later.
const NodeTextDecoder = TextDecoder
const utf8 = new TextDecoder('utf-8', { ignoreBOM: true })
// iconv-lite has no table of ISO-2022-JP.
const iso2022jp = new TextDecoder('iso-2022-jp')

/**
 * Decodes bytes by the label of their charset:
 * - Bytes that are valid UTF-8 are UTF-8, whatever a single-byte label says.
 * - Bytes labelled UTF-8 that are not UTF-8 have the charset that their HTML names, and else
 *   windows-1252.
 */
export function decodeMailText(bytes: Uint8Array, label: string): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const encoding = encodingOf(label)
  if (/^utf-?8$/.test(encoding)) return isUtf8(buffer) ? utf8.decode(buffer) : withoutLabel(buffer)
  if (encoding === 'iso-2022-jp') return iso2022jp.decode(buffer)
  if (!isMultiByte.test(encoding)) return isUtf8(buffer) ? utf8.decode(buffer) : iconv.decode(buffer, encoding)
  const text = iconv.decode(buffer, encoding, { stripBOM: true })
  return text.includes('\ufffd') && isUtf8(buffer) ? utf8.decode(buffer) : text
}

/** Decodes bytes that are not UTF-8. A few damaged characters do not change the charset. */
function withoutLabel(buffer: Buffer): string {
  const named = /<meta\b[^>]{0,200}charset\s{0,9}=\s{0,9}["']?([\w.:-]{1,40})/i.exec(buffer.toString('latin1', 0, 2048))
  const encoding = encodingOf(named?.[1] ?? '')
  if (!/^utf-?8$/.test(encoding)) return iconv.decode(buffer, encoding)
  const text = utf8.decode(buffer)
  const beyondAscii = text.replaceAll(/[\0-\x7f]/g, '')
  const damaged = beyondAscii.split('\ufffd').length - 1
  return damaged * 2 > beyondAscii.length ? iconv.decode(buffer, 'windows-1252') : text
}

/**
 * Decodes the encoded words of a header (RFC 2047). Adjacent words of one charset are joined before
 * they are decoded, because some programs cut a character into two words.
 */
export function decodeHeaderText(raw: string): string {
  const word = /=\?([^?\s]{1,60})\?([bq])\?([^?\r\n]{0,2000})\?=/gi
  let decoded = ''
  let waiting: { charset: string; bytes: Buffer[] } | null = null
  let end = 0
  const flush = (): void => {
    if (waiting) decoded += decodeMailText(Buffer.concat(waiting.bytes), waiting.charset)
    waiting = null
  }
  for (const found of raw.matchAll(word)) {
    const between = raw.slice(end, found.index)
    const charset = (found[1] ?? '').split('*')[0]?.toLowerCase() ?? ''
    const bytes = bytesOf(found[2] ?? '', found[3] ?? '')
    const follows = end > 0 && between.trim() === ''
    if (follows && waiting !== null && (waiting as { charset: string }).charset === charset) waiting.bytes.push(bytes)
    else {
      flush()
      if (!follows) decoded += between
      waiting = { charset, bytes: [bytes] }
    }
    end = found.index + found[0].length
  }
  flush()
  return decoded + raw.slice(end)
}

const bytesOf = (kind: string, text: string): Buffer =>
  kind.toLowerCase() === 'b'
    ? Buffer.from(text, 'base64')
    : Buffer.from(
        text
          .replaceAll('_', ' ')
          .replaceAll(/=([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
        'latin1',
      )

/** A TextDecoder that decodes as `decodeMailText` does. It accepts every label. */
export class MailTextDecoder {
  readonly encoding: string

  constructor(label = 'utf-8') {
    this.encoding = label
  }

  decode(bytes: ArrayBuffer | Uint8Array = new Uint8Array()): string {
    return decodeMailText(bytes instanceof Uint8Array ? bytes : new Uint8Array(bytes), this.encoding)
  }
}
