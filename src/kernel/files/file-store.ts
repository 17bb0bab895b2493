// Stores the bytes of files on disk. An upload is hashed while it is written to a temporary file.
// Once a database row refers to the upload, the file is renamed to its hash. Equal files are stored
// once.
import { createHash, randomUUID } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { lutimes, mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { Problem } from '../errors.ts'
import type { Source } from './download.ts'
import { safeName, textWatcher, typeOf } from './file-types.ts'

/** The maximum size of a file in bytes (DOMAIN 25.2). */
export const maxBytes = 25 * 1024 * 1024

/** A received file. Its bytes are in a temporary file until they are kept or discarded. */
export interface Upload {
  readonly name: string
  readonly size: number
  /** The media type, detected from the bytes. */
  readonly contentType: string
  readonly sha256: string
}

export interface FileStore {
  /**
   * Writes a whole stream to a temporary file. Throws 413 beyond `most` bytes (default:
   * `maxBytes`). The caller must then call `keep` or `discard`.
   */
  receive(stream: Readable, name: string, most?: number): Promise<Upload>
  /** Returns all bytes of an upload that has not been discarded. */
  bytesOf(upload: Upload): Promise<Buffer>
  /**
   * Stores the bytes under their hash. Must be the last step of the transaction that writes the
   * row, because a rollback does not remove the bytes.
   */
  keep(upload: Upload): Promise<void>
  discard(upload: Upload): Promise<void>
  /** Returns the bytes with this hash, or null when they are not stored. */
  find(sha256: string): Promise<Source | null>
  remove(sha256: string): Promise<void>
  /** Returns the number of stored files. */
  count(): Promise<number>
  /**
   * Moves bytes to the trash and sets the date of their file to `at`. `find` still returns bytes in
   * the trash.
   */
  moveToTrash(sha256: string, at: Date): Promise<void>
  takeFromTrash(sha256: string): Promise<void>
  inTrash(): Promise<string[]>
  /**
   * Deletes bytes that were moved to the trash before that time. Returns the number of deleted
   * files.
   */
  emptyTrash(before: Date): Promise<number>
  /**
   * Removes temporary files older than that time. The requests that created these files have ended.
   */
  sweep(before: Date): Promise<void>
  /**
   * Returns the hashes of all bytes that were last stored before that time. Also removes temporary
   * files older than that time.
   */
  keptBefore(time: Date): AsyncIterable<string>
}

/** Returns the path of the file with this hash. */
export const placeOf = (folder: string, sha256: string): string => join(folder, sha256.slice(0, 2), sha256)
/** Returns the trash folder, to which the clean-up moves unused bytes. */
export const trashOf = (folder: string): string => join(folder, 'trash')
const isHash = (name: string): boolean => /^[0-9a-f]{64}$/.test(name)

/**
 * Returns a file store that uses a folder. `assertPlace` must throw while the folder must not be
 * written to.
 */
export function diskFiles(folder: string, assertPlace = (): void => undefined): FileStore {
  const temporary = join(folder, 'tmp')
  const pathOf = (sha256: string): string => placeOf(folder, sha256)
  /** The path of the temporary file of each upload, until the upload is kept or discarded. */
  const places = new WeakMap<Upload, string>()
  const trash = createTrash(folder, pathOf)

  return {
    ...trash,

    async receive(stream, name, most = maxBytes) {
      assertPlace()
      await make(temporary)
      const path = join(temporary, randomUUID())
      const upload = await receiveInto(path, stream, safeName(name), most)
      places.set(upload, path)
      return upload
    },

    bytesOf: (upload) => readFile(places.get(upload) ?? pathOf(upload.sha256)),

    async keep(upload) {
      const place = places.get(upload)
      if (place === undefined) return
      const path = pathOf(upload.sha256)
      await make(dirname(path))
      // The rename replaces an equal stored file and thereby renews its date. A concurrent clean-up
      // then does not delete the file.
      await rename(place, path)
      places.delete(upload)
      await settle(dirname(path))
    },

    async discard(upload) {
      const place = places.get(upload)
      if (place === undefined) return
      places.delete(upload)
      await rm(place, { force: true })
    },

    async find(sha256) {
      for (const path of [pathOf(sha256), join(trashOf(folder), sha256)]) {
        const found = await stat(path).catch(() => null)
        if (found) return { size: found.size, read: (start, end) => createReadStream(path, { start, end }) }
      }
      return null
    },

    remove: (sha256) => rm(pathOf(sha256), { force: true }),

    async count() {
      let count = 0
      for (const part of await partsOf(folder)) count += (await namesIn(join(folder, part))).filter(isHash).length
      return count
    },

    async sweep(before) {
      for (const name of await namesIn(temporary)) {
        const path = join(temporary, name)
        if (await isOlder(path, before)) await rm(path, { force: true })
      }
    },

    async *keptBefore(time) {
      await this.sweep(time)
      for (const part of await partsOf(folder)) {
        for (const name of await namesIn(join(folder, part)))
          if (isHash(name) && (await isOlder(join(folder, part, name), time))) yield name
      }
    },
  }
}

/** Writes the stream to a new file. Removes the file when an error occurs. */
async function receiveInto(path: string, stream: Readable, name: string, most: number): Promise<Upload> {
  const hash = createHash('sha256')
  const text = textWatcher()
  let size = 0
  const file = createWriteStream(path, { flags: 'wx', mode: 0o600, flush: true })
  try {
    await pipeline(
      stream,
      async function* (chunks: AsyncIterable<Buffer>) {
        for await (const chunk of chunks) {
          size += chunk.length
          if (size > most) throw tooLarge(most)
          hash.update(chunk)
          text.see(chunk)
          yield chunk
        }
      },
      file,
    )
    return { name, size, contentType: await typeOf(path, name, text.isText()), sha256: hash.digest('hex') }
  } catch (error) {
    // Waits until the file is closed. It may still be opening when the sender disconnects early.
    if (!file.closed)
      await new Promise<void>((resolve) =>
        file
          .on('error', () => resolve())
          .once('close', resolve)
          .destroy(),
      )
    await rm(path, { force: true })
    throw error
  }
}

type Trash = Pick<FileStore, 'moveToTrash' | 'takeFromTrash' | 'inTrash' | 'emptyTrash'>

function createTrash(folder: string, pathOf: (sha256: string) => string): Trash {
  const trash = trashOf(folder)
  const inTrash = async (): Promise<string[]> => (await namesIn(trash)).filter(isHash)
  return {
    inTrash,

    async moveToTrash(sha256, at) {
      await make(trash)
      const path = pathOf(sha256)
      // Sets the date before the move. If the process dies in between, the stored file only looks
      // newer, so it is not deleted too early.
      await lutimes(path, at, at)
      await rename(path, join(trash, sha256))
    },

    async takeFromTrash(sha256) {
      await make(dirname(pathOf(sha256)))
      await rename(join(trash, sha256), pathOf(sha256))
    },

    async emptyTrash(before) {
      let count = 0
      for (const name of await inTrash()) {
        if (!(await isOlder(join(trash, name), before))) continue
        await rm(join(trash, name), { force: true })
        count++
      }
      return count
    },
  }
}

const isOlder = async (path: string, time: Date): Promise<boolean> =>
  ((await stat(path).catch(() => null))?.mtime ?? time) < time

export const tooLarge = (most = maxBytes): Problem =>
  new Problem('payload_too_large', `A file may have at most ${most / 1024 / 1024} MiB.`)

const partsOf = async (folder: string): Promise<string[]> =>
  (await namesIn(folder)).filter((name) => name !== 'tmp' && name !== 'trash')

const namesIn = (folder: string): Promise<string[]> => readdir(folder).catch(() => [])

/**
 * Creates a folder and its missing parents. Syncs the parent of the topmost new folder, so that the
 * new folders survive a power failure.
 */
async function make(folder: string): Promise<void> {
  const first = await mkdir(folder, { recursive: true, mode: 0o700 })
  if (first !== undefined) await settle(dirname(first))
}

/** Syncs a folder. A new name in the folder survives a power failure only after the sync. */
async function settle(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
