// Where the bytes of files are: behind one interface, on disk for now. They are written to a temporary place while they are
// hashed, and moved under their hash once a row refers to them; what is sent twice is kept once.
import { createHash, randomUUID } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Source } from './download.ts'
import { Problem } from './errors.ts'
import { safeName, textWatcher, typeOf } from './filetypes.ts'

/** Bytes of one file at most (DOMAIN 25.2). */
export const mostBytes = 25 * 1024 * 1024

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
  /** Removes what was being received before that time: whoever received it has ended. */
  sweep(before: Date): Promise<void>
  /** Hashes of all bytes that were last kept before that time; older temporary ones are removed on the way. */
  keptBefore(time: Date): AsyncIterable<string>
}

/** Where the bytes with this hash lie in the folder of the files. */
export const placeOf = (folder: string, sha256: string): string => join(folder, sha256.slice(0, 2), sha256)

export function diskFiles(folder: string): FileStore {
  const waiting = join(folder, 'tmp')
  const pathOf = (sha256: string): string => placeOf(folder, sha256)
  /** Where each upload waits; gone once it is kept or discarded. */
  const places = new WeakMap<Upload, string>()

  return {
    async receive(stream, name, most = mostBytes) {
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
      const path = pathOf(sha256)
      const found = await stat(path).catch(() => null)
      return found && { size: found.size, read: (start, end) => createReadStream(path, { start, end }) }
    },

    remove: (sha256) => rm(pathOf(sha256), { force: true }),

    async sweep(before) {
      for (const name of await namesIn(waiting)) {
        const path = join(waiting, name)
        if (await isOlder(path, before)) await rm(path, { force: true })
      }
    },

    async *keptBefore(time) {
      await this.sweep(time)
      for (const part of await namesIn(folder)) {
        if (part === 'tmp') continue
        for (const name of await namesIn(join(folder, part)))
          if (/^[0-9a-f]{64}$/.test(name) && (await isOlder(join(folder, part, name), time))) yield name
      }
    },
  }
}

const isOlder = async (path: string, time: Date): Promise<boolean> =>
  ((await stat(path).catch(() => null))?.mtime ?? time) < time

export const tooLarge = (most = mostBytes): Problem =>
  new Problem('payload_too_large', `A file may have at most ${most / 1024 / 1024} MiB.`)

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
