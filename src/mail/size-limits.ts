// Limits the input of the mail parser. The parser compares each line that begins with two dashes
// with every boundary, so a crafted e-mail could take minutes.
import { UnreadableMail } from './failures.ts'

export const maxMailBytes = 30 * 1024 * 1024
/**
 * The maximum number of lines of at most 40 bytes; the rest of the e-mail is cut off. Parsing
 * 150,000 such lines took a second. Encoded attachments do not count, because their lines are
 * longer.
 */
const maxShortLines = 150_000
const shortLineBytes = 40
/**
 * The maximum number of comparisons of lines with boundaries. 50 million took a quarter of a
 * second.
 */
const maxComparisons = 50_000_000

/**
 * Returns the bytes to parse. Throws UnreadableMail when the e-mail is empty, too large or has too
 * many parts.
 */
export function limitMailBytes(bytes: Uint8Array): Uint8Array {
  if (bytes.length > maxMailBytes) throw new UnreadableMail('The e-mail is larger than 30 MiB.')
  const content = cut(withoutPreface(bytes))
  if (content.length === 0) throw new UnreadableMail('This is not an e-mail: it is empty.')
  const buffer = Buffer.from(content.buffer, content.byteOffset, content.byteLength)
  const dashes = count(buffer, '\n--')
  // Each boundary has at least one line with dashes. If there are few such lines, their number is a
  // good enough upper bound of the number of boundaries.
  const boundaries = dashes < 5_000 ? dashes : buffer.toString('latin1').toLowerCase().split('boundary').length - 1
  if (dashes * boundaries > maxComparisons) throw tooMany()
  return content
}

const tooMany = (): UnreadableMail =>
  new UnreadableMail('The e-mail cannot be read: it has too many parts.', { isMail: true })

/**
 * Removes leading empty lines and the "From " line of mbox files. The parser would end the headers
 * at such a line.
 */
function withoutPreface(bytes: Uint8Array): Uint8Array {
  let start = 0
  while (bytes[start] === 10 || bytes[start] === 13) start++
  const head = Buffer.from(bytes.subarray(start, start + 1000)).toString('latin1')
  const line = /^From [^\n]*\n/.exec(head)?.[0].length ?? 0
  return bytes.subarray(start + line)
}

function cut(bytes: Uint8Array): Uint8Array {
  let short = 0
  let from = 0
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, from)) {
    if (at - from <= shortLineBytes && ++short > maxShortLines) return bytes.subarray(0, from)
    from = at + 1
  }
  return bytes
}

function count(buffer: Buffer, text: string): number {
  let found = 0
  for (let at = buffer.indexOf(text, 0, 'latin1'); at >= 0; at = buffer.indexOf(text, at + 1, 'latin1')) found++
  return found
}
