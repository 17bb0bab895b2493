// The type of a reply that is not JSON. It is in this folder because the types of replies refer to
// it; kernel/files/download.ts creates and sends such replies.
import type { Readable } from 'node:stream'

/** Bytes with random access, such as a file. `to` is the offset of the last byte to read. */
export interface Source {
  readonly size: number
  read(from: number, to: number): Readable
}

export interface DownloadParts {
  /**
   * One of the media types that the contract lists for the operation; parameters may follow, such
   * as `text/csv; charset=utf-8`.
   */
  mediaType: string
  /** A stream is read only as fast as the client receives it, and not at all for HEAD. */
  body: string | Buffer | Source | Readable | AsyncIterable<string | Uint8Array>
  /**
   * The suggested file name, which may contain any characters. Without a name, Content-Disposition
   * is sent only when `disposition` is set.
   */
  name?: string
  /** Defaults to `attachment`. */
  disposition?: 'attachment' | 'inline'
  /** The length of the body in bytes, where it is known but not part of `body`. */
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
