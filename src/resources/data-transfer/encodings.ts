// Decodes, encodes and detects the text encodings of files.
import type { Schema } from '../../contract/types.ts'
import { readAll, type Source } from '../../kernel/files/download.ts'
import { yieldIfDue } from '../../kernel/runtime/cooperative.ts'
import { UnreadableFile } from './unreadable-file.ts'

export type Encoding = Schema<'ImportEncoding'>

/** The parser blocks the event loop for each chunk, so chunks are small. */
const pieceBytes = 4096

/**
 * Yields the text of a file in small chunks. Throws `UnreadableFile` for bytes that are invalid in
 * the encoding.
 */
export async function* decodedText(bytes: AsyncIterable<Buffer>, encoding: string): AsyncGenerator<string> {
  const decoder = await decoderOf(encoding)
  for await (const chunk of bytes)
    for (let at = 0; at < chunk.length; at += pieceBytes) yield decoder.write(chunk.subarray(at, at + pieceBytes))
  yield decoder.end()
}

interface Decoder {
  write(bytes: Buffer): string
  end(): string
}

/** Returns a decoder for the encoding. Loads iconv-lite only for files that are not UTF-8. */
async function decoderOf(encoding: string): Promise<Decoder> {
  if (encoding === 'utf-8') {
    const decoder = new TextDecoder('utf-8', { fatal: true })
    const decode = (chunk?: Buffer): string => {
      try {
        return checkIsText(chunk ? decoder.decode(chunk, { stream: true }) : decoder.decode(), encoding)
      } catch (cause) {
        if (cause instanceof UnreadableFile) throw cause
        throw new UnreadableFile('The file is not valid UTF-8. Name its encoding, or save it as "CSV UTF-8".', cause)
      }
    }
    return { write: decode, end: decode }
  }
  // iconv-lite is necessary because TextDecoder decodes windows-1252 as Latin-1 in some versions of
  // Node.
  const { default: iconv } = await import('iconv-lite')
  const decoder = iconv.getDecoder(encoding)
  const check = (text = ''): string => {
    if (text.includes('\ufffd')) throw new UnreadableFile(`The file is not valid ${encoding}.`)
    return checkIsText(text, encoding)
  }
  return { write: (bytes) => check(decoder.write(bytes)), end: () => check(decoder.end() ?? '') }
}

/** Throws `UnreadableFile` for a text with U+0000, which occurs only in binary files. */
function checkIsText(text: string, encoding: string): string {
  if (text.includes('\u0000')) throw new UnreadableFile(`The file is not text in ${encoding}.`)
  return text
}

/** Encodes texts. Characters that the encoding lacks become question marks. */
export async function encodeText(text: string, encoding: string): Promise<Buffer> {
  if (encoding === 'utf-8') return Buffer.from(text)
  const { default: iconv } = await import('iconv-lite')
  return iconv.encode(text, encoding, { addBOM: false })
}

/** Maps encoding names of chardet that are not in the contract. */
const detected: Readonly<Record<string, Encoding>> = {
  'iso-8859-1': 'windows-1252',
  'iso-8859-6': 'windows-1256',
  'iso-8859-7': 'windows-1253',
  'iso-8859-8': 'windows-1255',
  'iso-8859-9': 'windows-1254',
}
const guessable: readonly Encoding[] = [
  ...(['windows-1250', 'windows-1251', 'windows-1252', 'windows-1253', 'windows-1254', 'windows-1255'] as const),
  ...(['windows-1256', 'iso-8859-2', 'iso-8859-5', 'koi8-r', 'shift_jis', 'euc-jp', 'euc-kr', 'big5'] as const),
  'gb18030',
]
/** The maximum size of the sample for the guess. The sample has only lines with non-ASCII bytes. */
const maxSampleBytes = 64 * 1024

/**
 * Returns the encoding of a text file. UTF-8 is detected reliably, because text in other encodings
 * is almost never valid UTF-8. Any other encoding without a byte order mark is a guess.
 */
export async function detectEncoding(source: Source): Promise<Encoding> {
  const utf8 = new TextDecoder('utf-8', { fatal: true })
  let isUtf8 = true
  let begin: Buffer | undefined
  const sample: Buffer[] = []
  let sampled = 0
  for await (const chunk of readAll(source) as AsyncIterable<Buffer>) {
    begin ??= chunk.subarray(0, maxSampleBytes)
    isUtf8 &&= isDecodable(utf8, chunk)
    if (sampled < maxSampleBytes) {
      const lines = linesBeyondAscii(chunk, maxSampleBytes - sampled)
      sample.push(lines)
      sampled += lines.length
    }
    await yieldIfDue()
  }
  const unicode = unicodeOf(begin ?? Buffer.alloc(0))
  if (unicode) return unicode
  return isUtf8 && isDecodable(utf8) ? 'utf-8' : guessEncoding(Buffer.concat(sample))
}

/**
 * Returns whether the chunk is valid. Without a chunk, returns whether the text ends with a
 * complete character.
 */
function isDecodable(decoder: TextDecoder, chunk?: Buffer): boolean {
  try {
    if (chunk) decoder.decode(chunk, { stream: true })
    else decoder.decode()
    return true
  } catch {
    return false
  }
}

/** Returns the lines with non-ASCII bytes. ASCII lines do not help to guess the encoding. */
function linesBeyondAscii(chunk: Buffer, maxBytes: number): Buffer {
  const lines: Buffer[] = []
  let size = 0
  for (let from = 0; from < chunk.length && size < maxBytes; ) {
    const end = chunk.indexOf(10, from)
    const to = end < 0 ? chunk.length : end + 1
    const line = chunk.subarray(from, Math.min(to, from + maxBytes - size))
    if (line.some((byte) => byte > 127)) size += lines.push(line) && line.length
    from = to
  }
  return Buffer.concat(lines)
}

/**
 * Recognizes UTF-8 and UTF-16 by the byte order mark. UTF-16 without a mark is recognized by the
 * zero byte in each ASCII character.
 */
function unicodeOf(begin: Buffer): Encoding | undefined {
  const mark = begin.toString('hex', 0, 3)
  if (mark === 'efbbbf') return 'utf-8'
  if (mark.startsWith('fffe')) return 'utf-16le'
  if (mark.startsWith('feff')) return 'utf-16be'
  const zeros = [0, 0]
  for (const [index, byte] of begin.entries()) if (byte === 0) zeros[index % 2] = (zeros[index % 2] ?? 0) + 1
  const [even = 0, odd = 0] = zeros
  if (odd > begin.length / 4 && even < odd / 10) return 'utf-16le'
  return even > begin.length / 4 && odd < even / 10 ? 'utf-16be' : undefined
}

async function guessEncoding(sample: Buffer): Promise<Encoding> {
  const { default: chardet } = await import('chardet')
  const found = chardet.analyse(sample).map(({ name }) => name.toLowerCase())
  const known = found.map((name) => detected[name] ?? guessable.find((each) => each === name))
  return known.find((name) => name !== undefined) ?? 'windows-1252'
}
