// What the parser of mail may be given. It takes a turn per line, keeps the lines of a text apart until the end, and compares
// each line that begins with two dashes with every boundary: harmless in mails, and minutes in what somebody made for it.
import { UnreadableMail } from './failures.ts'

export const maxMailBytes = 30 * 1024 * 1024
/** Lines of up to 40 bytes: those of encoded files are longer. 150,000 took a second; after them the mail is not read on. */
const maxShortLines = 150_000
const shortLineBytes = 40
/** Comparisons with boundaries; 50 million took a quarter of a second. */
const maxComparisons = 50_000_000

/** The part of the bytes that is read. Throws Unreadable for nothing, for too much, and for too many parts. */
export function limitMailBytes(bytes: Uint8Array): Uint8Array {
  if (bytes.length > maxMailBytes) throw new UnreadableMail('The e-mail is larger than 30 MiB.')
  const content = cut(withoutPreface(bytes))
  if (content.length === 0) throw new UnreadableMail('This is no e-mail: it is empty.')
  const buffer = Buffer.from(content.buffer, content.byteOffset, content.byteLength)
  const dashes = count(buffer, '\n--')
  // There are never more boundaries than such lines, so a look at the words is worth it for many lines only.
  const boundaries = dashes < 5_000 ? dashes : buffer.toString('latin1').toLowerCase().split('boundary').length - 1
  if (dashes * boundaries > maxComparisons) throw tooMany()
  return content
}

const tooMany = (): UnreadableMail =>
  new UnreadableMail('The e-mail cannot be read: it has too many parts.', { isMail: true })

/** Without the line mailbox files put in front of each mail, and empty lines, which would end the headers before the first. */
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
