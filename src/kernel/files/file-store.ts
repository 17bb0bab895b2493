// Where the bytes of files are: behind one interface, on disk for now. They are written to a temporary place while they are
// hashed, and moved under their hash once a row refers to them; what is sent twice is kept once.
import { createHash, randomUUID } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { lutimes, mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { Problem } from '../errors.ts'
import type { Source } from './download.ts'
import { safeName, textWatcher, typeOf } from './file-types.ts'

/** Bytes of one file at most (DOMAIN 25.2). */
export const maxBytes = 25 * 1024 * 1024

/** What came in and waits to be kept. */
export interface Upload {
  readonly name: string
  readonly size: number
  /** Found out from the bytes. */
  readonly contentType: string
  readonly sha256: string
}

export interface FileStore {
  /** Takes all of a stream. Throws 413 for more than `most`, which is `mostBytes`. What is not kept must be discarded. */
  receive(stream: Readable, name: string, most?: number): Promise<Upload>
  /** All bytes of what was received and not discarded. */
  bytesOf(upload: Upload): Promise<Buffer>
  /** Puts the bytes under their hash. Call it in the transaction that writes the row, and for nothing that is rolled back. */
  keep(upload: Upload): Promise<void>
  discard(upload: Upload): Promise<void>
  /** Null when the bytes are gone. */
  find(sha256: string): Promise<Source | null>
  remove(sha256: string): Promise<void>
  /** How many are kept. */
  count(): Promise<number>
  /** Moves bytes to the trash, where they count from that time on. `find` still finds them there. */
  moveToTrash(sha256: string, at: Date): Promise<void>
  takeFromTrash(sha256: string): Promise<void>
  inTrash(): Promise<string[]>
  /** Deletes what was moved to the trash before that time. Returns how many there were. */
  emptyTrash(before: Date): Promise<number>
  /** Removes what was being received before that time: whoever received it has ended. */
  sweep(before: Date): Promise<void>
  /** Hashes of all bytes that were last kept before that time; older temporary ones are removed on the way. */
  keptBefore(time: Date): AsyncIterable<string>
}

/** Where the bytes with this hash lie in the folder of the files. */
export const placeOf = (folder: string, sha256: string): string => join(folder, sha256.slice(0, 2), sha256)
/** Bytes that the clean-up moved aside, under their hashes. */
export const trashOf = (folder: string): string => join(folder, 'trash')
const isHash = (name: string): boolean => /^[0-9a-f]{64}$/.test(name)

/** `assertPlace` throws when nothing may be written there at the moment. */
export function diskFiles(folder: string, assertPlace = (): void => undefined): FileStore {
  const waiting = join(folder, 'tmp')
  const trash = trashOf(folder)
  const pathOf = (sha256: string): string => placeOf(folder, sha256)
  /** Where each upload waits; gone once it is kept or discarded. */
  const places = new WeakMap<Upload, string>()

  return {
    async receive(stream, name, most = maxBytes) {
      assertPlace()
      await make(waiting)
      const path = join(waiting, randomUUID())
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
        const safe = safeName(name)
        const upload: Upload = {
          name: safe,
          size,
          contentType: await typeOf(path, safe, text.isText()),
          sha256: hash.digest('hex'),
        }
        places.set(upload, path)
        return upload
      } catch (error) {
        // It may be about to be opened only now, when whoever sent it is gone.
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
    },

    bytesOf: (upload) => readFile(places.get(upload) ?? pathOf(upload.sha256)),

    async keep(upload) {
      const place = places.get(upload)
      if (place === undefined) return
      const path = pathOf(upload.sha256)
      await make(dirname(path))
      // Also over bytes that are there: they are the same, and are young again for whoever tidies up meanwhile.
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
      for (const path of [pathOf(sha256), join(trash, sha256)]) {
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

    async moveToTrash(sha256, at) {
      await make(trash)
      const path = pathOf(sha256)
      // First: a process that ends in between leaves bytes that are younger, not bytes that are deleted too early.
      await lutimes(path, at, at)
      await rename(path, join(trash, sha256))
    },

    async takeFromTrash(sha256) {
      await make(dirname(pathOf(sha256)))
      await rename(join(trash, sha256), pathOf(sha256))
    },

    inTrash: async () => (await namesIn(trash)).filter(isHash),

    async emptyTrash(before) {
      let count = 0
      for (const name of await this.inTrash()) {
        if (!(await isOlder(join(trash, name), before))) continue
        await rm(join(trash, name), { force: true })
        count++
      }
      return count
    },

    async sweep(before) {
      for (const name of await namesIn(waiting)) {
        const path = join(waiting, name)
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

const isOlder = async (path: string, time: Date): Promise<boolean> =>
  ((await stat(path).catch(() => null))?.mtime ?? time) < time

export const tooLarge = (most = maxBytes): Problem =>
  new Problem('payload_too_large', `A file may have at most ${most / 1024 / 1024} MiB.`)

const partsOf = async (folder: string): Promise<string[]> =>
  (await namesIn(folder)).filter((name) => name !== 'tmp' && name !== 'trash')

const namesIn = (folder: string): Promise<string[]> => readdir(folder).catch(() => [])

/** A folder, and those it is in. What is new of it survives a power cut. */
async function make(folder: string): Promise<void> {
  const first = await mkdir(folder, { recursive: true, mode: 0o700 })
  if (first !== undefined) await settle(dirname(first))
}

/** A new name in a folder survives a power cut once the folder is written. */
async function settle(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
