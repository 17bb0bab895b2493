// A reply that is not JSON, as a handler describes it. It stands here because the types of replies name it; how it becomes a
// reply, and the function that makes one, are in kernel/files/download.ts.
import type { Readable } from 'node:stream'

/** Bytes that can be read from any place on, such as a file. `to` is the last byte that is read. */
export interface Source {
  readonly size: number
  read(from: number, to: number): Readable
}

export interface DownloadParts {
  /** One of those the contract lists for the operation; parameters may follow, such as `text/csv; charset=utf-8`. */
  mediaType: string
  /** Streams are read as fast as the caller takes them, and not at all for a HEAD. */
  body: string | Buffer | Source | Readable | AsyncIterable<string | Uint8Array>
  /** File name for the caller, any text; without one there is no Content-Disposition unless `disposition` is given. */
  name?: string
  /** `attachment` when left out. */
  disposition?: 'attachment' | 'inline'
  /** Bytes of the body, where they are known beforehand and the body does not tell. */
  size?: number
  /** With its quotes. */
  etag?: string
  headers?: Record<string, string>
}

export class Download {
  readonly parts: DownloadParts

  constructor(parts: DownloadParts) {
    this.parts = parts
  }
}
