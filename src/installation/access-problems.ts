// Finds the reason why the data folder cannot be used. SQLite's errors do not show it: an
// unwritable file is opened read-only, and a full disk is reported as "disk I/O error".
import { accessSync, closeSync, constants, existsSync, fsyncSync, openSync, rmSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/**
 * The size of the test file in bytes. It is larger than the 32 KiB that SQLite writes when it opens
 * a database.
 */
const trialBytes = 64 * 1024

const codeOf = (error: unknown): string => String((error as NodeJS.ErrnoException).code)

/**
 * Returns the end of a sentence about the first path that cannot be written, with the reason, or
 * null. Ignores missing paths.
 */
export function accessProblem(paths: readonly string[]): string | null {
  for (const path of paths.filter((each) => existsSync(each))) {
    const { R_OK, W_OK, X_OK } = constants
    try {
      accessSync(path, statSync(path).isDirectory() ? R_OK | W_OK | X_OK : R_OK | W_OK)
    } catch (error) {
      if (codeOf(error) === 'EROFS') return `${path} is on a file system that is mounted read-only`
      if (!['EACCES', 'EPERM'].includes(codeOf(error))) throw error
      const { uid, mode } = statSync(path)
      const own = process.getuid?.()
      const why =
        uid === own
          ? `its permissions are ${(mode & 0o777).toString(8)}`
          : `it belongs to the user with id ${uid}, and this process runs as ${own}`
      return `${path} cannot be written: ${why}. Run Accord as the owner, or change the owner with chown`
    }
  }
  return null
}

/** Returns whether the disk of a folder is full. Writes and deletes a small test file. */
export function isDiskFull(folder: string): boolean {
  const path = join(folder, `.trial-${process.pid}`)
  let handle: number | undefined
  try {
    handle = openSync(path, 'wx', 0o600)
    writeSync(handle, Buffer.alloc(trialBytes))
    fsyncSync(handle)
    return false
  } catch (error) {
    return ['ENOSPC', 'EDQUOT'].includes(codeOf(error))
  } finally {
    if (handle !== undefined) {
      closeSync(handle)
      rmSync(path, { force: true })
    }
  }
}
