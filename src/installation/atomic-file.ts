// Writes a file atomically: after a power cut, it has either the old or the whole new content. The
// content is written to a temporary file and synced, and the file is then renamed.
import { randomUUID } from 'node:crypto'
import { linkSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { syncPath } from '../../db/disk.ts'

interface Options {
  mode?: number
  /** Whether the file must be new. If it exists, the function changes nothing and returns false. */
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

/**
 * Gives the draft its final name. Returns false when the name is taken. Uses a hard link, because a
 * rename would replace an existing file.
 */
function named(draft: string, path: string): boolean {
  try {
    linkSync(draft, path)
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? ''
    if (code === 'EEXIST') return false
    // The file system does not support hard links.
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'].includes(code)) throw cause
    renameSync(draft, path)
  }
  return true
}

/**
 * Removes drafts that were last written before `before`. Newer drafts may belong to a running
 * process.
 */
export function removeStaleDrafts(folder: string, before: Date): void {
  for (const name of readdirSync(folder)) {
    if (!/^\..+\.[0-9a-f-]{36}\.new$/.test(name)) continue
    const found = statSync(join(folder, name), { throwIfNoEntry: false })
    if (found && found.mtime < before) rmSync(join(folder, name), { force: true })
  }
}
