// Recodes the headers of multipart forms to UTF-8, as the parser expects them. Some programs write
// file names in windows-1252.
import { isUtf8 } from 'node:buffer'
import { PassThrough, Transform } from 'node:stream'
import { formText } from '../../contract/input/form-text.ts'

const maxHeaderSize = 16 * 1024
const headerEnd = Buffer.from('\r\n\r\n')

/** Returns a stream that passes on the form, with the headers of all parts in UTF-8. */
export function utf8PartHeaders(contentType: string): Transform {
  const [, quoted, plain] =
    /;\s{0,9}boundary\s{0,9}=\s{0,9}(?:"([^"]{1,200})"|([^\s;]{1,200}))/i.exec(contentType) ?? []
  const boundary = quoted ?? plain
  if (boundary === undefined) return new PassThrough()
  const delimiter = Buffer.from(`\r\n--${boundary}`, 'latin1')
  // The first delimiter needs no line break before it, so the text begins behind one.
  let rest: Buffer = Buffer.from('\r\n')
  let isFirst = true
  let isHeader = false

  /** Returns the place of a delimiter in `rest`, or -1. */
  function delimiterIn(isLast: boolean): number {
    for (let at = rest.indexOf(delimiter); at >= 0; at = rest.indexOf(delimiter, at + 1)) {
      const next = rest.toString('latin1', at + delimiter.length, at + delimiter.length + 2)
      if (/^(\r\n|--|[ \t])/.test(next) || (next.length < 2 && !isLast)) return at
    }
    return -1
  }

  /** Returns the bytes that can be passed on, and keeps the others in `rest`. */
  function take(isLast: boolean): Buffer {
    const passed: Buffer[] = []
    const pass = (length: number): void => {
      passed.push(rest.subarray(0, length))
      rest = rest.subarray(length)
    }
    for (;;) {
      const end = isHeader ? rest.indexOf(headerEnd) : delimiterIn(isLast)
      const isOpen = !isHeader && end >= 0 && end + delimiter.length + 2 > rest.length && !isLast
      if (end < 0 || isOpen) {
        const isLong = isHeader && rest.length > maxHeaderSize
        if (isLong) isHeader = false
        const kept = isLast || isLong ? 0 : isHeader ? rest.length : delimiter.length + 1
        pass(Math.max(0, rest.length - kept))
        break
      }
      if (isHeader) {
        const header = rest.subarray(0, end)
        passed.push(isUtf8(header) ? header : Buffer.from(formText(Buffer.from(header))))
        rest = rest.subarray(end)
      } else pass(end + delimiter.length)
      isHeader = !isHeader
    }
    return withoutLineBreak(Buffer.concat(passed))
  }

  /** Removes the line break that was put before the text. */
  function withoutLineBreak(passed: Buffer): Buffer {
    if (!isFirst) return passed
    if (passed.length < 2) {
      rest = Buffer.concat([passed, rest])
      return Buffer.alloc(0)
    }
    isFirst = false
    return passed.subarray(2)
  }

  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
      done(null, take(false))
    },
    flush: (done) => done(null, take(true)),
  })
}
