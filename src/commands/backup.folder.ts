// What becomes of a folder of backups: those of this installation that are too many go, and so does what was cut off. Several
// installations may share one, and keep other things in it.
import { readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { daysMs, systemClock } from '../kernel/clock.ts'
import { isName, type Manifest, readManifest } from './backup.manifest.ts'

/**
 * Of complete backups of this installation alone, and of those older than this one. Renamed first, so that half of one never looks
 * like one.
 */
export function removeOlder(
  folder: string,
  newest: string,
  { installation }: Manifest,
  keep: number,
): { removed: number; others: number } {
  const whole = readdirSync(folder).filter((name) => isName(name) && isWhole(join(folder, name)))
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

function isWhole(path: string): boolean {
  try {
    readManifest(path)
    return true
  } catch {
    return false
  }
}

/** What backups left that were cut off. One that is being made is younger. */
export function removeForgotten(folder: string): void {
  const since = systemClock.now().getTime() - daysMs(1)
  for (const name of readdirSync(folder).filter((each) => /^\..*Z\.partial$/.test(each)))
    if (statSync(join(folder, name)).mtimeMs < since) rmSync(join(folder, name), { recursive: true, force: true })
}
