// What becomes of a folder of backups: those of this installation that are too many go, and so does what was cut off. Several
// installations may share one, and keep other things in it.
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { daysMs, systemClock } from '../../kernel/runtime/clock.ts'
import { newOwnerId, ownerState } from '../../kernel/runtime/process-identity.ts'
import { isBackupName, type Manifest, readManifest } from './manifest.ts'

/**
 * Of complete backups of this installation alone, and of those older than this one. Renamed first, so that half of one never looks
 * like one.
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

/** Says in a partial backup who makes it, until it is complete. */
export function writeOwnerNote(partial: string, installation: string | null): void {
  writeFileSync(ownerNote(partial), `${newOwnerId()}\n${installation ?? ''}\n`, { mode: 0o600, flag: 'wx' })
}

export const removeOwnerNote = (partial: string): void => rmSync(ownerNote(partial), { force: true })

/**
 * Removes what backups left that were cut off: those of this installation whose process is gone, and any that is older than a day,
 * because of those of other machines nothing is known.
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
