// Copies and hashes the files of a backup. Each copy is readable by its owner only, and is synced
// to disk.
import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream, existsSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { syncPath } from '../../../db/disk.ts'
import { readAll } from '../../kernel/files/download.ts'
import { type FileStore, placeOf } from '../../kernel/files/file-store.ts'
import { FileStorageError } from '../../kernel/files/s3-client.ts'
import type { FileChecksum } from './manifest.ts'

export const isMissing = (error: unknown): boolean => (error as NodeJS.ErrnoException | null)?.code === 'ENOENT'

/** Copies a file. Returns the size and the hash of the copy. Throws when `to` exists. */
export async function copyFile(from: string, to: string): Promise<FileChecksum> {
  // The source is opened first. Otherwise, a missing source would leave an empty copy.
  const source = await open(from)
  return writeCopy(source.createReadStream(), to)
}

async function writeCopy(source: Readable, to: string): Promise<FileChecksum> {
  const hash = createHash('sha256')
  let size = 0
  await pipeline(
    source,
    async function* (chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) {
        hash.update(chunk)
        size += chunk.length
        yield chunk
      }
    },
    createWriteStream(to, { flags: 'wx', mode: 0o600, flush: true }),
  )
  return { size, sha256: hash.digest('hex') }
}

export async function hashFile(path: string): Promise<FileChecksum> {
  const hash = createHash('sha256')
  let size = 0
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    hash.update(chunk)
    size += chunk.length
  }
  return { size, sha256: hash.digest('hex') }
}

/** Copies uploaded files from their store into a folder. Each file is copied only once. */
export interface Collection {
  /**
   * Copies the files that were not copied before. Returns the hashes of files that are missing or
   * whose contents do not match their hash.
   */
  take(hashes: Iterable<string>): Promise<string[]>
  /** Removes the copies of all files whose hash is not in `hashes`. */
  keepOnly(hashes: ReadonlySet<string>): void
  /** Returns the size of each copied file in bytes, by hash. */
  sizes(): Record<string, number>
}

export function collect(files: Pick<FileStore, 'find'>, to: string): Collection {
  const taken = new Map<string, number>()
  return {
    async take(hashes) {
      const missing: string[] = []
      for (const sha256 of hashes) {
        if (taken.has(sha256)) continue
        const place = placeOf(to, sha256)
        mkdirSync(dirname(place), { recursive: true, mode: 0o700 })
        try {
          const source = await files.find(sha256)
          const found = source && (await writeCopy(readAll(source), place))
          if (found?.sha256 === sha256) {
            taken.set(sha256, found.size)
            continue
          }
        } catch (error) {
          // The clean-up may move a file to the trash after `find`.
          if (!isMissing(error) && !(error instanceof FileStorageError && error.isMissing)) throw error
        }
        rmSync(place, { force: true })
        missing.push(sha256)
      }
      return missing
    },
    keepOnly(hashes) {
      for (const sha256 of [...taken.keys()].filter((each) => !hashes.has(each))) {
        rmSync(placeOf(to, sha256), { force: true })
        taken.delete(sha256)
      }
    },
    sizes: () => Object.fromEntries([...taken].sort(([a], [b]) => (a < b ? -1 : 1))),
  }
}

/** Syncs a folder and all folders in it, so that their entries survive a power cut. */
export function syncFolders(folder: string): void {
  for (const entry of readdirSync(folder, { withFileTypes: true }))
    if (entry.isDirectory()) syncFolders(join(folder, entry.name))
  syncPath(folder)
}

/**
 * Returns the size in bytes of a file, or of all files below a folder. Returns 0 when the path does
 * not exist.
 */
export function sizeOf(path: string): number {
  if (!existsSync(path)) return 0
  const found = statSync(path)
  if (!found.isDirectory()) return found.size
  return readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0)
}
