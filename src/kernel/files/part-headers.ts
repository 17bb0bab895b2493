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
  const delimiter = Buffer.from(`--${boundary}`, 'latin1')
  let rest: Buffer = Buffer.alloc(0)
  let isHeader = false

  /** Returns the bytes that can be passed on, and keeps the others in `rest`. */
  function take(isLast: boolean): Buffer[] {
    const passed: Buffer[] = []
    const pass = (length: number): void => {
      passed.push(rest.subarray(0, length))
      rest = rest.subarray(length)
    }
    for (;;) {
      const end = rest.indexOf(isHeader ? headerEnd : delimiter)
      if (end < 0) {
        const isLong = isHeader && rest.length > maxHeaderSize
        if (isLong) isHeader = false
        const kept = isLast || isLong ? 0 : isHeader ? rest.length : delimiter.length - 1
        pass(Math.max(0, rest.length - kept))
        return passed
      }
      if (isHeader) {
        const header = rest.subarray(0, end)
        passed.push(isUtf8(header) ? header : Buffer.from(formText(Buffer.from(header))))
        rest = rest.subarray(end)
      } else pass(end + delimiter.length)
      isHeader = !isHeader
    }
  }

  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
      for (const bytes of take(false)) if (bytes.length > 0) this.push(bytes)
      done()
    },
    flush(done) {
      for (const bytes of take(true)) if (bytes.length > 0) this.push(bytes)
      done()
    },
  })
}
