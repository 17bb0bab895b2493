// A page or file of the documentation in memory, and its compressed bytes.
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import { byteTag } from '../../kernel/write/etag.ts'

export interface PageFile {
  type: string
  text: string
  etag: string
}

export const pageFile = (type: string, text: string): PageFile => ({ type, text, etag: byteTag(text) })

const compressors = {
  // A higher quality takes seconds for the script of Swagger UI.
  br: (text: string) => promisify(brotliCompress)(text, { params: { [constants.BROTLI_PARAM_QUALITY]: 6 } }),
  gzip: (text: string) => promisify(gzip)(text),
}
export type FileEncoding = keyof typeof compressors

const compressed = new WeakMap<PageFile, Partial<Record<FileEncoding, Promise<Buffer>>>>()

/** Returns the compressed bytes of a file. Each file is compressed once, outside the event loop. */
export function compressedFile(file: PageFile, encoding: FileEncoding): Promise<Buffer> {
  const known = compressed.get(file) ?? {}
  compressed.set(file, known)
  known[encoding] ??= compressors[encoding](file.text)
  return known[encoding]
}

/** Returns an encoding that the value of Accept-FileEncoding allows. */
export function encodingFor(accepted: string | string[] | undefined): FileEncoding | undefined {
  const listed = new Map(
    String(accepted ?? '')
      .toLowerCase()
      .split(',')
      .slice(0, 20)
      .map((each) => {
        const [name = '', ...more] = each.split(';').map((part) => part.trim())
        return [name, !more.some((part) => /^q=0(\.0*)?$/.test(part))] as const
      }),
  )
  return (['br', 'gzip'] as const).find((name) => listed.get(name) === true)
}
