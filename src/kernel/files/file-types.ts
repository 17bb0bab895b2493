// The media type of an uploaded file, detected from its bytes and never taken from the caller, and
// a file name that is safe to show and to save under.
import { extname } from 'node:path'

/** Media types of text by file extension; any other text is plain text. */
const texts: Readonly<Record<string, string>> = {
  '.csv': 'text/csv',
  '.json': 'application/json',
  '.md': 'text/markdown',
  '.svg': 'image/svg+xml',
  '.xml': 'application/xml',
  '.html': 'text/html',
  '.htm': 'text/html',
}

/** Types that browsers show without running code. */
const shown = /^(image\/(jpeg|png|apng|gif|webp|avif|bmp)|application\/pdf)$/

export const dispositionOf = (type: string): 'inline' | 'attachment' => (shown.test(type) ? 'inline' : 'attachment')

/**
 * Returns the media type of the bytes at `path`. `isText`: whether they are text without control
 * characters.
 */
export async function typeOf(path: string, name: string, isText: boolean): Promise<string> {
  const ending = extname(name).toLowerCase()
  // The package is loaded with the first file, because few requests need it.
  const { fileTypeFromFile } = await import('file-type')
  // A file that only begins like a type is not of that type.
  const found = await fileTypeFromFile(path).catch(() => undefined)
  if (found && !(isText && found.mime === 'application/xml')) return found.mime
  return isText ? (texts[ending] ?? (found ? found.mime : 'text/plain')) : 'application/octet-stream'
}

/**
 * Returns a checker that tests whether a stream of bytes is UTF-8 text without control characters.
 */
export function textWatcher(): { see(chunk: Buffer): void; isText(): boolean } {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let isText = true
  const look = (read: () => string): void => {
    if (!isText) return
    try {
      isText = !controls.test(read())
    } catch {
      isText = false
    }
  }
  return {
    see: (chunk) => look(() => decoder.decode(chunk, { stream: true })),
    isText: () => {
      look(() => decoder.decode())
      return isText
    },
  }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: tab, line ends and form feed are what texts hold of them
const controls = /[\u0000-\u0008\u000b\u000e-\u001f\u007f]/

const maxNameLength = 255
/**
 * Lone surrogates, control characters, line ends, invisible characters, and direction marks that
 * hide an extension.
 */
const hidden = /[\p{Surrogate}\p{Cc}\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb]/gu

/** Names that Windows reserves for devices, with any extension. */
const device = /^(con|prn|aux|nul|conin\$|conout\$|com[0-9\u00b9\u00b2\u00b3]|lpt[0-9\u00b9\u00b2\u00b3])(?=$|[. ])/i

/** Longer names are cut before they are cleaned, because callers may send names of any length. */
const maxSentLength = 1000

/**
 * Returns the last part of a path without unsafe characters, cut to the maximum length with its
 * extension kept.
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

/** Trims spaces and dots; a regular expression would take quadratic time. */
function trimmed(name: string): string {
  const isEdge = (at: number): boolean => /[\s.]/.test(name.charAt(at))
  let [from, to] = [0, name.length]
  while (from < to && isEdge(from)) from++
  while (to > from && isEdge(to - 1)) to--
  return name.slice(from, to)
}
