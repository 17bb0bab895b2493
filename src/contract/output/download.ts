// The type of a reply that is not JSON. The types of replies refer to this type, so it is in this
// folder. kernel/files/download.ts creates and sends such replies.
import type { Readable } from 'node:stream'

/**
 * Bytes that can be read from any offset, such as a file. `to` is the offset of the last byte to
 * read, so it is included.
 */
export interface Source {
  readonly size: number
  read(from: number, to: number): Readable
}

export interface DownloadParts {
  /**
   * A media type that the contract lists for the operation. Parameters may follow: `text/csv;
   * charset=utf-8`.
   */
  mediaType: string
  /**
   * The content. A stream is read at the pace at which the client receives it, and is not read for
   * HEAD.
   */
  body: string | Buffer | Source | Readable | AsyncIterable<string | Uint8Array>
  /**
   * The suggested file name, in any characters. Without a name, Content-Disposition is sent only
   * when `disposition` is set.
   */
  name?: string
  /** The type of the Content-Disposition header. The default is `attachment`. */
  disposition?: 'attachment' | 'inline'
  /** The length of the body in bytes, for a `body` that does not tell its own length. */
  size?: number
  /** The ETag, including its quotes. */
  etag?: string
  headers?: Record<string, string>
}

export class Download {
  readonly parts: DownloadParts

  constructor(parts: DownloadParts) {
    this.parts = parts
  }
}
