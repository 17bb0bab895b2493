// What databases and backups need of a disk: bytes that survive a power cut, and how much room is left.

import { closeSync, fsyncSync, mkdirSync, openSync, statfsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/** A file, or the names in a folder, survive a power cut once this is done. */
export function syncPath(path: string): void {
  const handle = openSync(path, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}

/** Creates a folder with its parents where they are missing. The new names survive a power cut. */
export function makeFolder(path: string, mode: number): void {
  const first = mkdirSync(path, { recursive: true, mode })
  if (first === undefined) return
  for (let made = resolve(path); made.length >= resolve(first).length; made = dirname(made)) {
    try {
      syncPath(dirname(made))
    } catch (cause) {
      // A folder that may be written but not listed cannot be opened, so it cannot be synced.
      if ((cause as NodeJS.ErrnoException).code !== 'EACCES') throw cause
    }
  }
}

/** Bytes that this user may still write there. */
export function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}

/** Kept free whatever is written, so that a copy never takes the last bytes of a server. */
const reserve = 16 * 1024 * 1024

/** What is wrong with writing so much there, in a sentence; null when it fits. */
export function noRoomFor(bytes: number, folder: string): string | null {
  const free = freeBytes(folder)
  return free >= bytes + reserve
    ? null
    : `${megabytes(bytes + reserve)} are needed in ${folder}, ${megabytes(free)} are free`
}

export const megabytes = (bytes: number): string =>
  `${(bytes / 1e6).toLocaleString('en-US', { maximumFractionDigits: 1 })} MB`

/** Whether writing failed for want of room. */
export function isFull(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return ['ENOSPC', 'EDQUOT', 'EFBIG', 'SQLITE_FULL'].includes(code)
}
