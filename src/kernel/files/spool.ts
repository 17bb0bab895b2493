// The temporary files of uploads on the local disk. Every file store uses them, because the hash
// and the media type of an upload are known only when all of it has arrived.
import { createHash, randomUUID } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { mkdir, open, readdir, readFile, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type FileStore, maxBytes, tooLarge, type Upload } from './file-store.ts'
import { safeName, textWatcher, typeOf } from './file-types.ts'

export interface Spool extends Pick<FileStore, 'receive' | 'bytesOf' | 'discard' | 'sweep'> {
  /** Returns the path of the upload's temporary file; undefined after `release` or `discard`. */
  pathOf(upload: Upload): string | undefined
  /** Forgets the temporary file, which was moved elsewhere. */
  release(upload: Upload): void
}

/** `assertPlace` throws while the folder must not be written to. */
export function createSpool(folder: string, assertPlace: () => void): Spool {
  const temporary = join(folder, 'tmp')
  /** The path of the temporary file of each upload, until the upload is kept or discarded. */
  const places = new WeakMap<Upload, string>()
  return {
    pathOf: (upload) => places.get(upload),
    release: (upload) => void places.delete(upload),

    async receive(stream, name, most = maxBytes) {
      assertPlace()
      await makeFolders(temporary)
      const path = join(temporary, randomUUID())
      const upload = await receiveInto(path, stream, safeName(name), most)
      places.set(upload, path)
      return upload
    },

    bytesOf(upload) {
      const path = places.get(upload)
      if (path === undefined) throw new Error('The temporary file of the upload is gone.')
      return readFile(path)
    },

    async discard(upload) {
      const place = places.get(upload)
      if (place === undefined) return
      places.delete(upload)
      await rm(place, { force: true })
    },

    async sweep(before) {
      for (const name of await namesIn(temporary)) {
        const path = join(temporary, name)
        if (await isOlder(path, before)) await rm(path, { force: true })
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

export const isOlder = async (path: string, time: Date): Promise<boolean> =>
  ((await stat(path).catch(() => null))?.mtime ?? time) < time

export const namesIn = (folder: string): Promise<string[]> => readdir(folder).catch(() => [])

/**
 * Creates a folder and its missing parents. Syncs the parent of the topmost new folder, so that the
 * new folders survive a power failure.
 */
export async function makeFolders(folder: string): Promise<void> {
  const first = await mkdir(folder, { recursive: true, mode: 0o700 })
  if (first !== undefined) await syncFolder(dirname(first))
}

/** Syncs a folder. A new name in the folder survives a power failure only after the sync. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
