// Stores the bytes of files in a folder. `keep` moves the temporary file of an upload to a path
// that is derived from its hash.
import { createReadStream } from 'node:fs'
import { lutimes, readFile, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Problem } from '../errors.ts'
import { type FileStore, isHash, placeOf, type StoredBytes, type StoredFile, trashOf } from './file-store.ts'
import { createSpool, isOlder, makeFolders, namesIn, syncFolder } from './spool.ts'

/**
 * Returns a file store that uses a folder. `assertPlace` throws while the folder must not be
 * written to.
 */
export function diskFiles(folder: string, assertPlace = (): void => undefined): FileStore {
  const pathOf = (sha256: string): string => placeOf(folder, sha256)
  const spool = createSpool(folder, assertPlace)
  const trash = createTrash(folder, pathOf)

  async function find(sha256: string): Promise<StoredFile | null> {
    for (const isInTrash of [false, true]) {
      const path = isInTrash ? join(trashOf(folder), sha256) : pathOf(sha256)
      const found = await stat(path).catch(() => null)
      if (found) return { size: found.size, isInTrash, read: (start, end) => createReadStream(path, { start, end }) }
    }
    return null
  }

  return {
    place: folder,
    receive: spool.receive,
    discard: spool.discard,
    sweep: spool.sweep,
    ...trash,

    bytesOf: (upload) => readFile(spool.pathOf(upload) ?? pathOf(upload.sha256)),

    prepare: async () => false,

    async keep(upload) {
      const place = spool.pathOf(upload)
      if (place === undefined) {
        // The first `keep` has moved the temporary file. If its transaction was rolled back and
        // runs again, a sweep may have removed the bytes in between, because no row referred to
        // them.
        if ((await find(upload.sha256)) === null) throw removedMeanwhile()
        return
      }
      const path = pathOf(upload.sha256)
      await makeFolders(dirname(path))
      // The rename replaces an equal stored file and thereby renews its date. A concurrent clean-up
      // then does not delete the file.
      await rename(place, path)
      spool.release(upload)
      await syncFolder(dirname(path))
    },

    find,

    remove: (sha256) => rm(pathOf(sha256), { force: true }),

    async count() {
      let count = 0
      for (const part of await partsOf(folder)) count += (await namesIn(join(folder, part))).filter(isHash).length
      return count
    },

    async *keptBefore(time) {
      await spool.sweep(time)
      for (const part of await partsOf(folder)) {
        for (const name of await namesIn(join(folder, part)))
          if (isHash(name) && (await isOlder(join(folder, part, name), time))) yield name
      }
    },

    findProblem: async () => null,
  }
}

const removedMeanwhile = (): Problem =>
  new Problem('unavailable', 'The bytes of the file were removed while it was stored; nothing was written.', {
    headers: { 'retry-after': '1' },
  })

type Trash = Pick<FileStore, 'moveToTrash' | 'takeFromTrash' | 'inTrash' | 'emptyTrash'>

function createTrash(folder: string, pathOf: (sha256: string) => string): Trash {
  const trash = trashOf(folder)
  const hashes = async (): Promise<string[]> => (await namesIn(trash)).filter(isHash)
  return {
    async inTrash() {
      const found: StoredBytes[] = []
      for (const sha256 of await hashes()) {
        const { size } = (await stat(join(trash, sha256)).catch(() => null)) ?? { size: 0 }
        found.push({ sha256, size })
      }
      return found
    },

    async moveToTrash(sha256, at) {
      await makeFolders(trash)
      const path = pathOf(sha256)
      // Sets the modification time before the move. If the process dies in between, the stored file
      // only looks newer, so it is not deleted too early.
      await lutimes(path, at, at)
      await rename(path, join(trash, sha256))
    },

    async takeFromTrash(sha256) {
      await makeFolders(dirname(pathOf(sha256)))
      await rename(join(trash, sha256), pathOf(sha256))
    },

    async emptyTrash(before) {
      let count = 0
      for (const name of await hashes()) {
        if (!(await isOlder(join(trash, name), before))) continue
        await rm(join(trash, name), { force: true })
        count++
      }
      return count
    },
  }
}

const partsOf = async (folder: string): Promise<string[]> =>
  (await namesIn(folder)).filter((name) => name !== 'tmp' && name !== 'trash')
