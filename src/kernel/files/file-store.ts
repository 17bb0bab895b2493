// The interface of the stores for the bytes of files: a folder (disk-files.ts) or a bucket
// (s3-files.ts). An upload is hashed while it is written to a temporary file. Once a database row
// refers to the upload, its bytes are stored under their hash. Equal files are stored once.
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { Problem } from '../errors.ts'
import type { Source } from './download.ts'

/** The maximum size of a file in bytes. */
export const maxBytes = 25 * 1024 * 1024

/** A received file. Its bytes are in a temporary file until they are kept or discarded. */
export interface Upload {
  readonly name: string
  readonly size: number
  /** The media type, detected from the bytes. */
  readonly contentType: string
  readonly sha256: string
}

export interface StoredFile extends Source {
  readonly isInTrash: boolean
}

/** An entry in a list of stored files. */
export interface StoredBytes {
  readonly sha256: string
  readonly size: number
}

export interface FileStore {
  /** The folder, or the URL of the bucket and prefix, for messages. */
  readonly place: string
  /**
   * Writes the stream to a temporary file. Throws 413, and removes the file, when the stream has
   * more than `most` bytes (default: `maxBytes`). The caller must call `discard` for each returned
   * upload, even after `keep`.
   */
  receive(stream: Readable, name: string, most?: number): Promise<Upload>
  /** Returns all bytes of an upload that has not been discarded. */
  bytesOf(upload: Upload): Promise<Buffer>
  /**
   * Sends the bytes to a bucket before the transaction, so that no transaction waits for the
   * network. Returns whether it stored the bytes, to which no row refers yet. A folder does nothing
   * and returns false.
   */
  prepare(upload: Upload): Promise<boolean>
  /**
   * Stores the bytes under their hash. Must be the last step of the transaction that writes the
   * row, because a rollback does not remove the bytes. The bytes are durable when the promise
   * resolves. Throws 503 when the bytes were removed after an earlier `keep` of the upload.
   */
  keep(upload: Upload): Promise<void>
  discard(upload: Upload): Promise<void>
  /** Returns the bytes with this hash, or null when they are not stored. Looks in the trash too. */
  find(sha256: string): Promise<StoredFile | null>
  /**
   * Deletes the bytes. Must run in a transaction with `isAlone`, because a concurrent transaction
   * could keep equal bytes. Null for a bucket: no transaction may wait for the network, and a
   * bucket may apply a deletion late.
   */
  readonly remove: ((sha256: string) => Promise<void>) | null
  count(): Promise<number>
  /**
   * Moves bytes to the trash. A folder sets the date of the file to `at`; a bucket uses its own
   * clock.
   */
  moveToTrash(sha256: string, at: Date): Promise<void>
  takeFromTrash(sha256: string): Promise<void>
  inTrash(): Promise<StoredBytes[]>
  /** Deletes files that were moved to the trash before the given time. Returns their number. */
  emptyTrash(before: Date): Promise<number>
  /** Removes temporary files older than the given time, which ended requests left behind. */
  sweep(before: Date): Promise<void>
  /**
   * Yields the hashes of all files that were last stored before `time`. Also removes temporary
   * files older than `time`.
   */
  keptBefore(time: Date): AsyncIterable<string>
  /**
   * Returns a sentence that says why the store cannot be used; null when it can. A folder always
   * returns null, because `createDisk` checks it.
   */
  findProblem(): Promise<string | null>
}

/** Returns the path of the file with this hash. Keys in a bucket have the same form. */
export const placeOf = (folder: string, sha256: string): string => join(folder, sha256.slice(0, 2), sha256)
/** Returns the trash folder, to which the clean-up moves unused bytes. */
export const trashOf = (folder: string): string => join(folder, 'trash')
export const isHash = (name: string): boolean => /^[0-9a-f]{64}$/.test(name)

export const tooLarge = (most = maxBytes): Problem =>
  new Problem('payload_too_large', `A file may have at most ${most / 1024 / 1024} MiB.`)
