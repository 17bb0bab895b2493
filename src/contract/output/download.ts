// A reply that is not JSON, as a handler describes it. It stands here because the types of replies
// name it; kernel/files/download.ts makes and sends one.
import type { Readable } from 'node:stream'

/** Bytes with random access, such as a file. `to` is the last byte that is read. */
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
  /** A stream is read as fast as the caller takes it, and not at all for HEAD. */
  body: string | Buffer | Source | Readable | AsyncIterable<string | Uint8Array>
  /**
   * The file name for the caller, any text. Without it there is no Content-Disposition unless
   * `disposition` is set.
   */
  name?: string
  /** Defaults to `attachment`. */
  disposition?: 'attachment' | 'inline'
  /** The length of the body in bytes, if it is known and the body does not have it. */
  size?: number
  /** Includes the quotes. */
  etag?: string
  headers?: Record<string, string>
}

export class Download {
  readonly parts: DownloadParts

  constructor(parts: DownloadParts) {
    this.parts = parts
  }
}
