// Removes old and interrupted backups of this installation from a backup folder. The folder may
// also have backups of other installations, and other files.
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { daysMs, systemClock } from '../../kernel/runtime/clock.ts'
import { newOwnerId, ownerState } from '../../kernel/runtime/process-identity.ts'
import { isBackupName, type Manifest, readManifest } from './manifest.ts'

/**
 * Removes old backups of this installation and keeps the newest `keep` complete backups. A backup
 * is renamed before its removal, so that an interrupted removal does not leave half a backup under
 * a valid name.
 */
export function removeOldBackups(
  folder: string,
  newest: string,
  { installation }: Manifest,
  keep: number,
): { removed: number; others: number } {
  const whole = readdirSync(folder).filter((name) => isBackupName(name) && isComplete(join(folder, name)))
  const own = whole.filter(
    (name) => installation !== null && readManifest(join(folder, name)).installation === installation,
  )
  const older = own.filter((name) => join(folder, name) < newest)
  const removed = older.sort().slice(0, Math.max(0, older.length - (keep - 1)))
  for (const name of removed) {
    const gone = join(folder, `.${name}.partial`)
    renameSync(join(folder, name), gone)
    rmSync(gone, { recursive: true, force: true })
  }
  return { removed: removed.length, others: whole.filter((name) => !own.includes(name)).length }
}

function isComplete(path: string): boolean {
  try {
    readManifest(path)
    return true
  } catch {
    return false
  }
}

const ownerNote = (partial: string): string => join(partial, 'owner')

/**
 * Writes a note that names the process and the installation of a partial backup. The note is
 * removed when the backup is complete.
 */
export function writeOwnerNote(partial: string, installation: string | null): void {
  writeFileSync(ownerNote(partial), `${newOwnerId()}\n${installation ?? ''}\n`, { mode: 0o600, flag: 'wx' })
}

export const removeOwnerNote = (partial: string): void => rmSync(ownerNote(partial), { force: true })

/**
 * Removes the partial backups of this installation whose process has ended. Also removes every
 * partial backup that is older than a day, even if its process may still run on another machine.
 */
export function removeInterruptedBackups(folder: string, installation: string | null): void {
  const since = systemClock.now().getTime() - daysMs(1)
  for (const name of readdirSync(folder).filter((each) => /^\..*Z\.partial$/.test(each))) {
    const path = join(folder, name)
    if (isAbandoned(path, installation) || statSync(path).mtimeMs < since)
      rmSync(path, { recursive: true, force: true })
  }
}

function isAbandoned(partial: string, installation: string | null): boolean {
  if (installation === null || !existsSync(ownerNote(partial))) return false
  const [owner = '', of = ''] = readFileSync(ownerNote(partial), 'utf8').split('\n')
  return of === installation && ownerState(owner) === 'gone'
}
