// Stores the bytes of files in a bucket that several servers share. A server receives an upload
// into a temporary file. It sends the file to the bucket under its hash, before the transaction
// that writes the row. Keys equal the paths of disk-files.ts, so `aws s3 sync` can copy files
// between a folder and a bucket.
import { Readable } from 'node:stream'
import { type FileStore, isHash, placeOf, type StoredBytes, trashOf, type Upload } from './file-store.ts'
import { FileStorageError, type ObjectStorage } from './s3-client.ts'
import { createSpool } from './spool.ts'

const keyOf = (sha256: string): string => placeOf('', sha256)
const trashKeyOf = (sha256: string): string => `${trashOf('')}/${sha256}`
const trashPrefix = `${trashOf('')}/`

/**
 * `folder` contains the temporary files. `assertPlace` throws while the folder must not be written
 * to.
 */
export function s3Files(objects: ObjectStorage, folder: string, assertPlace = (): void => undefined): FileStore {
  const spool = createSpool(folder, assertPlace)

  async function send(upload: Upload): Promise<void> {
    const path = spool.pathOf(upload)
    if (path === undefined) throw new Error('The upload was discarded before it was kept.')
    await objects.put(keyOf(upload.sha256), path, upload)
  }

  const read =
    (key: string): ((start: number, end: number) => Readable) =>
    (start, end) =>
      Readable.from(objects.read(key, start, end), { objectMode: false })

  async function* stored(): AsyncGenerator<StoredBytes & { modified: Date }> {
    for await (const { key, size, modified } of objects.list('')) {
      const sha256 = key.slice(key.lastIndexOf('/') + 1)
      if (isHash(sha256) && key === keyOf(sha256)) yield { sha256, size, modified }
    }
  }

  return {
    place: objects.url,
    receive: spool.receive,
    bytesOf: spool.bytesOf,
    discard: spool.discard,
    sweep: spool.sweep,

    async prepare(upload) {
      // Replacing an equal object renews its date, which keeps clean-ups from moving it to the
      // trash.
      await send(upload)
      return true
    },

    async keep(upload) {
      // Since `prepare`, another request may have deleted the last record with equal bytes.
      if ((await objects.sizeOf(keyOf(upload.sha256))) === null) await send(upload)
    },

    async find(sha256) {
      const key = keyOf(sha256)
      const size = await objects.sizeOf(key)
      if (size !== null) return { size, isInTrash: false, read: read(key) }
      // Unlike `sizeOf`, a list request fails for a missing bucket.
      const trashed = await objects.first(trashKeyOf(sha256))
      return trashed && { size: trashed.size, isInTrash: true, read: read(trashKeyOf(sha256)) }
    },

    remove: null,

    async count() {
      let count = 0
      for await (const _each of stored()) count++
      return count
    },

    async moveToTrash(sha256) {
      if (await objects.copy(keyOf(sha256), trashKeyOf(sha256))) await objects.remove(keyOf(sha256))
    },

    async takeFromTrash(sha256) {
      if (await objects.copy(trashKeyOf(sha256), keyOf(sha256))) await objects.remove(trashKeyOf(sha256))
    },

    async inTrash() {
      const found: StoredBytes[] = []
      for await (const { key, size } of objects.list(trashPrefix))
        found.push({ sha256: key.slice(trashPrefix.length), size })
      return found.filter(({ sha256 }) => isHash(sha256))
    },

    async emptyTrash(before) {
      let count = 0
      for await (const { key, modified } of objects.list(trashPrefix)) {
        // The bucket may have other objects below this prefix.
        if (!isHash(key.slice(trashPrefix.length)) || modified >= before) continue
        await objects.remove(key)
        count++
      }
      return count
    },

    async *keptBefore(time) {
      await spool.sweep(time)
      for await (const { sha256, modified } of stored()) if (modified < time) yield sha256
    },

    async findProblem() {
      try {
        await objects.first('')
        return null
      } catch (error) {
        if (!(error instanceof FileStorageError)) throw error
        return `${error.message}.`
      }
    },
  }
}
