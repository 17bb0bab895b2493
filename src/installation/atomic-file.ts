// Files of the data folder that appear whole or not at all, also when the power is cut while they are written: under another
// name first, then on the disk, then under their own.
import { randomUUID } from 'node:crypto'
import { linkSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { syncPath } from '../../db/disk.ts'

interface Options {
  mode?: number
  /** Only where there is none: false is answered otherwise. Else it takes the place of what is there. */
  isFirst?: boolean
}

export function writeFileAtomic(path: string, text: string, { mode = 0o644, isFirst = false }: Options = {}): boolean {
  if (isFirst && statSync(path, { throwIfNoEntry: false })) return false
  const draft = join(dirname(path), `.${basename(path)}.${randomUUID()}.new`)
  try {
    writeFileSync(draft, text, { mode, flag: 'wx', flush: true })
    if (!isFirst) renameSync(draft, path)
    else if (!named(draft, path)) return false
    syncPath(dirname(path))
    return true
  } finally {
    rmSync(draft, { force: true })
  }
}

/** Gives it its name, of which another process cannot take the place meanwhile, nor be taken by it. */
function named(draft: string, path: string): boolean {
  try {
    linkSync(draft, path)
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? ''
    if (code === 'EEXIST') return false
    // Not every file system knows two names for one file.
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'].includes(code)) throw cause
    renameSync(draft, path)
  }
  return true
}

/** What was being written when a process ended. Others may be writing at this moment, so only what is old. */
export function removeStaleDrafts(folder: string, before: Date): void {
  for (const name of readdirSync(folder)) {
    if (!/^\..+\.[0-9a-f-]{36}\.new$/.test(name)) continue
    const found = statSync(join(folder, name), { throwIfNoEntry: false })
    if (found && found.mtime < before) rmSync(join(folder, name), { force: true })
  }
}
