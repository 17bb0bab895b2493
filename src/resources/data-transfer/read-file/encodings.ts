// Decodes, encodes and detects the text encodings of files.
import type { Schema } from '../../../contract/types.ts'
import { yieldIfDue } from '../../../kernel/runtime/cooperative.ts'
import { stops, unreadable } from '../errors.ts'

export type Encoding = Schema<'ImportEncoding'>

/** The parser blocks the event loop for each chunk, so chunks are small. */
const pieceBytes = 4096

/**
 * Yields the text of a file in small chunks. Throws for bytes that are invalid in
 * the encoding.
 */
export async function* decodedText(
  bytes: AsyncIterable<Buffer>,
  encoding: string,
  findings: { strayLines: number },
): AsyncGenerator<string> {
  if (encoding === mixed) return yield* mixedText(bytes, findings)
  const decoder = await decoderOf(encoding)
  for await (const chunk of bytes)
    for (let at = 0; at < chunk.length; at += pieceBytes) yield decoder.write(chunk.subarray(at, at + pieceBytes))
  yield decoder.end()
}

/** Each line is UTF-8, or windows-1252 if it is no UTF-8. */
const mixed = 'mixed'

const maxLineBytes = 1024 * 1024

async function* mixedText(bytes: AsyncIterable<Buffer>, findings: { strayLines: number }): AsyncGenerator<string> {
  const { default: iconv } = await import('iconv-lite')
  const decode = (line: Buffer): string => {
    try {
      return checkIsText(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(line), mixed)
    } catch (cause) {
      if (stops(cause, 'file')) throw cause
      findings.strayLines++
      return checkIsText(iconv.decode(line, 'windows-1252'), mixed)
    }
  }
  let rest = Buffer.alloc(0)
  let isFirst = true
  for await (const chunk of bytes) {
    const all = Buffer.concat([rest, chunk])
    let from = 0
    for (let end = all.indexOf(10); end >= 0; end = all.indexOf(10, from)) {
      const line = decode(all.subarray(from, end + 1))
      yield isFirst ? line.replace(/^\ufeff/, '') : line
      isFirst = false
      from = end + 1
    }
    rest = all.subarray(from)
    if (rest.length > maxLineBytes) throw unreadable('A line of the file has more than 1 MiB.')
  }
  if (rest.length > 0) yield decode(rest)
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
        if (stops(cause, 'file')) throw cause
        throw unreadable('The file is not valid UTF-8. Name its encoding, or save it as "CSV UTF-8".', 1, cause)
      }
    }
    return { write: decode, end: decode }
  }
  // iconv-lite is necessary because TextDecoder decodes windows-1252 as Latin-1 in some versions of
  // Node.
  const { default: iconv } = await import('iconv-lite')
  const decoder = iconv.getDecoder(encoding)
  const check = (text = ''): string => {
    if (text.includes('\ufffd')) throw unreadable(`The file is not valid ${encoding}.`)
    return checkIsText(text, encoding)
  }
  return { write: (bytes) => check(decoder.write(bytes)), end: () => check(decoder.end() ?? '') }
}

/** Throws for a text with U+0000, which occurs only in binary files. */
function checkIsText(text: string, encoding: string): string {
  if (text.includes('\u0000')) throw unreadable(`The file is not text in ${encoding}.`)
  return text
}

/** Encodes texts. Characters that the encoding lacks become question marks. */
export async function encodeText(text: string, encoding: string): Promise<Buffer> {
  if (encoding === 'utf-8' || encoding === mixed) return Buffer.from(text)
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
export async function detectEncoding(
  bytes: AsyncIterable<Buffer>,
): Promise<{ encoding: Encoding; isUncertain: boolean }> {
  const utf8 = new TextDecoder('utf-8', { fatal: true })
  let isUtf8 = true
  let begin: Buffer | undefined
  const sample: Buffer[] = []
  let sampled = 0
  for await (const chunk of bytes) {
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
  const isValid = isUtf8 && isDecodable(utf8)
  if (unicode === 'utf-8' && !isValid) return { encoding: mixed, isUncertain: true }
  if (unicode) return { encoding: unicode, isUncertain: false }
  if (isValid) return { encoding: 'utf-8', isUncertain: false }
  const lines = Buffer.concat(sample)
  const { valid, others } = withoutUtf8Lines(lines)
  if (valid === 0) return guessEncoding(lines)
  // In Asian encodings, a short line may be valid UTF-8 by chance.
  const guess = await guessEncoding(Buffer.concat(others))
  const isMixed = valid >= others.length || western.has(guess.encoding) || guess.isUncertain
  return isMixed ? { encoding: mixed, isUncertain: true } : guessEncoding(lines)
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

/** Returns the number of lines that are UTF-8, and the other lines. */
function withoutUtf8Lines(lines: Buffer): { valid: number; others: Buffer[] } {
  let valid = 0
  const others: Buffer[] = []
  for (let from = 0; from < lines.length; ) {
    const end = lines.indexOf(10, from)
    const to = end < 0 ? lines.length : end + 1
    const line = lines.subarray(from, to)
    if (isDecodable(new TextDecoder('utf-8', { fatal: true }), line)) valid++
    else others.push(line)
    from = to
  }
  return { valid, others }
}

async function guessEncoding(sample: Buffer): Promise<{ encoding: Encoding; isUncertain: boolean }> {
  const { default: chardet } = await import('chardet')
  const found = chardet.analyse(sample).map(({ name }) => name.toLowerCase())
  const known = found.map((name) => detected[name] ?? guessable.find((each) => each === name))
  const guess = known.find((name) => name !== undefined) ?? 'windows-1252'
  if (!western.has(guess)) return { encoding: guess, isUncertain: false }
  const { default: iconv } = await import('iconv-lite')
  const rank = (encoding: Encoding): number => plausibility(iconv.decode(sample, encoding))
  // The encodings of Macs and of MS-DOS have the same bytes as those of Windows.
  const old = (['macintosh', 'cp850'] as const).reduce((one, other) => (rank(other) > rank(one) ? other : one))
  return rank(old) > rank(guess) ? { encoding: old, isUncertain: true } : { encoding: guess, isUncertain: false }
}

const western: ReadonlySet<Encoding> = new Set(['windows-1252', 'windows-1250', 'windows-1254', 'iso-8859-2'])

/** Returns how well the characters beyond ASCII fit texts in Western languages. */
function plausibility(text: string): number {
  let points = 0
  for (const [char, before, after] of around(text)) {
    if (/[àáâãäåæçèéêëìíîïñòóôõöøùúûüýÿßœšž]/u.test(char))
      points += /\p{Lu}/u.test(before) && /\p{Lu}/u.test(after) ? -1 : 2
    else if (/[ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜÝŒŠŽ]/u.test(char)) points += /\p{Ll}/u.test(before) ? -2 : 1
    else if (/\p{L}/u.test(char)) points -= 1
    else if (/\p{Cc}/u.test(char)) points -= 4
    else points += /[\p{L}]/u.test(before) && /[\p{L}]/u.test(after) && char !== '’' ? -2 : 0
  }
  return points
}

function* around(text: string): Generator<[char: string, before: string, after: string]> {
  const chars = [...text]
  for (const [index, char] of chars.entries())
    if (char > '\u007f') yield [char, chars[index - 1] ?? '', chars[index + 1] ?? '']
}
