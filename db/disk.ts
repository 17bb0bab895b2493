// Syncs files to the disk, and measures free space, for databases and backups.

import { closeSync, fsyncSync, mkdirSync, openSync, statfsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/**
 * Calls fsync for a file or a folder, so that the content or the file names survive a power cut.
 */
export function syncPath(path: string): void {
  const handle = openSync(path, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}

/** Creates a folder and its missing parents, and syncs their names to the disk. */
export function makeFolder(path: string, mode: number): void {
  const first = mkdirSync(path, { recursive: true, mode })
  if (first === undefined) return
  for (let made = resolve(path); made.length >= resolve(first).length; made = dirname(made)) {
    try {
      syncPath(dirname(made))
    } catch (cause) {
      // A folder without read permission cannot be opened to sync it.
      if ((cause as NodeJS.ErrnoException).code !== 'EACCES') throw cause
    }
  }
}

/** Returns the number of bytes that this user can still write to the disk of the folder. */
export function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}

/** The bytes that a copy must leave free, so that the server can continue to write. */
const reserveBytes = 16 * 1024 * 1024

/** Returns a text that says how much space is needed and free, or null when the bytes fit. */
export function noRoomFor(bytes: number, folder: string): string | null {
  const free = freeBytes(folder)
  return free >= bytes + reserveBytes
    ? null
    : `${megabytes(bytes + reserveBytes)} are needed in ${folder}, ${megabytes(free)} are free`
}

export const megabytes = (bytes: number): string =>
  `${(bytes / 1e6).toLocaleString('en-US', { maximumFractionDigits: 1 })} MB`

/** Returns whether a write failed because the disk or the quota is full. */
export function isFull(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return ['ENOSPC', 'EDQUOT', 'EFBIG', 'SQLITE_FULL'].includes(code)
}
