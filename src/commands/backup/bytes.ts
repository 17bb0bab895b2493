// Bytes of a backup, on their way in and out: copied with the rights of the owner alone and brought to the disk, and hashed again when
// they are checked.
import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream, existsSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { syncPath } from '../../../db/disk.ts'
import { placeOf } from '../../kernel/files/file-store.ts'
import type { FileChecksum } from './manifest.ts'

export const isMissing = (error: unknown): boolean => (error as NodeJS.ErrnoException | null)?.code === 'ENOENT'

/** Copies a file to where there is none. Answers what was copied. */
export async function copyFile(from: string, to: string): Promise<FileChecksum> {
  // First of all: else the copy of what is missing would still be made while it is cleared away.
  const source = await open(from)
  const hash = createHash('sha256')
  let size = 0
  await pipeline(
    source.createReadStream(),
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

/** The bytes of uploaded files, collected from one folder in another. Each is there once and whole. */
export interface Collection {
  /** Takes those it does not have. Answers those that are not there, or are not what their hash says. */
  take(hashes: Iterable<string>): Promise<string[]>
  /** Lets go of all but these. */
  keepOnly(hashes: ReadonlySet<string>): void
  /** Size by hash. */
  sizes(): Record<string, number>
}

export function collect(from: string, to: string): Collection {
  const taken = new Map<string, number>()
  return {
    async take(hashes) {
      const missing: string[] = []
      for (const sha256 of hashes) {
        if (taken.has(sha256)) continue
        const place = placeOf(to, sha256)
        mkdirSync(dirname(place), { recursive: true, mode: 0o700 })
        try {
          const found = await copyFile(placeOf(from, sha256), place)
          if (found.sha256 === sha256) {
            taken.set(sha256, found.size)
            continue
          }
        } catch (error) {
          if (!isMissing(error)) throw error
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

/** The names in a folder and in all folders in it survive a power cut. */
export function syncFolders(folder: string): void {
  for (const entry of readdirSync(folder, { withFileTypes: true }))
    if (entry.isDirectory()) syncFolders(join(folder, entry.name))
  syncPath(folder)
}

/** Bytes of a file, or of all files in a folder; 0 of what is not there. */
export function sizeOf(path: string): number {
  if (!existsSync(path)) return 0
  const found = statSync(path)
  if (!found.isDirectory()) return found.size
  return readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0)
}
