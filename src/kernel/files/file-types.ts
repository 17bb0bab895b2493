// Detects the media type of an uploaded file from its bytes; the type that the caller names is
// ignored. Also returns a file name that is safe to display and to save.
import { extname } from 'node:path'

/** The media types of text files by extension. Text with any other extension is `text/plain`. */
const texts: Readonly<Record<string, string>> = {
  '.csv': 'text/csv',
  '.vcf': 'text/vcard',
  '.json': 'application/json',
  '.md': 'text/markdown',
  '.svg': 'image/svg+xml',
  '.xml': 'application/xml',
  '.html': 'text/html',
  '.htm': 'text/html',
}

/** The extensions of tables, which may be in another encoding than UTF-8. */
const tables: ReadonlySet<string> = new Set(['.csv', '.tsv', '.txt', '.vcf'])

/** The media types that browsers display without running code. */
const shown = /^(image\/(jpeg|png|apng|gif|webp|avif|bmp)|application\/pdf)$/

export const dispositionOf = (type: string): 'inline' | 'attachment' => (shown.test(type) ? 'inline' : 'attachment')

/**
 * Returns the media type of the file at `path`. `isText` tells whether the file is text without
 * control characters.
 */
export async function typeOf(path: string, name: string, isText: boolean): Promise<string> {
  const ending = extname(name).toLowerCase()
  // Loads the package with the first file, because few requests need it.
  const { fileTypeFromFile } = await import('file-type')
  // The detection throws for a file that begins like a type but is damaged. Such a file has no
  // detected type.
  const found = await fileTypeFromFile(path).catch(() => undefined)
  // The byte order mark of UTF-16 looks like the beginning of an MPEG frame.
  if (found?.mime === 'audio/mpeg' && tables.has(ending)) return unknownType
  if (found && !(isText && found.mime === 'application/xml')) return found.mime
  return isText ? (texts[ending] ?? (found ? found.mime : 'text/plain')) : unknownType
}

const unknownType = 'application/octet-stream'

/**
 * Returns a checker for a stream of bytes. After `see` was called with every chunk, `isText`
 * returns whether the bytes are text without control characters: UTF-8, or UTF-16 with a byte order
 * mark, as Windows programs save it.
 */
export function textWatcher(): { see(chunk: Buffer): void; isText(): boolean } {
  let decoder: TextDecoder | undefined
  let isText = true
  const decode = (read: () => string): void => {
    if (!isText) return
    try {
      isText = !controls.test(read())
    } catch {
      isText = false
    }
  }
  return {
    see: (chunk) => {
      decoder ??= new TextDecoder(encodingOf(chunk), { fatal: true })
      decode(() => decoder?.decode(chunk, { stream: true }) ?? '')
    },
    isText: () => {
      decode(() => decoder?.decode() ?? '')
      return isText
    },
  }
}

/** Returns the encoding that the byte order mark at the start of a file names. */
const encodingOf = ([first, second]: Buffer): string =>
  first === 0xff && second === 0xfe ? 'utf-16le' : first === 0xfe && second === 0xff ? 'utf-16be' : 'utf-8'

// biome-ignore lint/suspicious/noControlCharactersInRegex: matches control characters
const controls = /[\u0000-\u0008\u000b\u000e-\u001f\u007f]/

const maxNameLength = 255
/**
 * Matches characters that are removed from file names: lone surrogates, control characters, line
 * ends, invisible characters, and direction marks, which can disguise an extension.
 */
const hidden = /[\p{Surrogate}\p{Cc}\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb]/gu

/** Matches names that Windows reserves for devices, with any extension. */
const device = /^(con|prn|aux|nul|conin\$|conout\$|com[0-9\u00b9\u00b2\u00b3]|lpt[0-9\u00b9\u00b2\u00b3])(?=$|[. ])/i

/**
 * The maximum number of characters of a name before it is cleaned. Longer names are cut first,
 * because callers may send names of any length.
 */
const maxSentLength = 1000

/**
 * Returns the last part of a path without unsafe characters. A name longer than `maxNameLength` is
 * cut but keeps its extension.
 */
export function safeName(sent: string): string {
  const last = sent.slice(Math.max(sent.lastIndexOf('/'), sent.lastIndexOf('\\')) + 1)
  const short = last.length > maxSentLength ? last.slice(0, maxSentLength / 2) + last.slice(-maxSentLength / 2) : last
  const name = trimmed(short.normalize('NFC').replaceAll(hidden, '')).replace(device, '_$1')
  if (name === '') return 'file'
  const characters = [...name]
  if (characters.length <= maxNameLength) return name
  const ending = extname(name).slice(0, 32)
  return characters.slice(0, maxNameLength - [...ending].length).join('') + ending
}

/** Removes spaces and dots at both ends. A regular expression would take quadratic time. */
function trimmed(name: string): string {
  const isEdge = (at: number): boolean => /[\s.]/.test(name.charAt(at))
  let [from, to] = [0, name.length]
  while (from < to && isEdge(from)) from++
  while (to > from && isEdge(to - 1)) to--
  return name.slice(from, to)
}
