// The type of a reply that is not JSON. It is in this folder, because the type `Reply` uses it.
// kernel/files/download.ts creates and sends such replies.
import type { Readable } from 'node:stream'

/**
 * Bytes that can be read from any offset, such as a file. `to` is the offset of the last byte,
 * inclusive.
 */
export interface Source {
  readonly size: number
  read(from: number, to: number): Readable
}

export interface DownloadParts {
  /**
   * A media type that the contract lists for the operation. May have parameters: `text/csv;
   * charset=utf-8`.
   */
  mediaType: string
  /** The content. A stream is read as fast as the client receives it, and is not read for HEAD. */
  body: string | Buffer | Source | Readable | AsyncIterable<string | Uint8Array>
  /**
   * The suggested file name, which may contain any characters. Content-Disposition is sent if
   * `name` or `disposition` is set.
   */
  name?: string
  /** The type of the Content-Disposition header. The default is `attachment`. */
  disposition?: 'attachment' | 'inline'
  /** The length of the body in bytes, for a stream of known length. */
  size?: number
  /** The ETag of a stream, including its quotes. Texts and buffers get a hash of their bytes. */
  etag?: string
  headers?: Record<string, string>
  /** Runs before the body is sent, and not for HEAD. If it throws, the client gets the error. */
  beforeBody?: () => Promise<void>
}

export class Download {
  readonly parts: DownloadParts

  constructor(parts: DownloadParts) {
    this.parts = parts
  }
}
