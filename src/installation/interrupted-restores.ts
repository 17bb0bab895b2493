// Removes what a killed `accord restore` has left: the folder with the unpacked backup, and the
// database beside the present one. A note in the folder names the process of the restore.
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { databaseFile } from '../../db/store.ts'
import type { Config } from '../config/config.ts'
import { daysMs, systemClock } from '../kernel/runtime/clock.ts'
import { newOwnerId, ownerState } from '../kernel/runtime/process-identity.ts'

export const unpackFolder = ({ dataDir }: Config, at: string): string => join(dataDir, `.restore-${at}.partial`)

/** Returns the path of the unpacked database that waits beside the present database. */
export const waitingDatabase = (database: string, at: string): string =>
  join(dirname(database), `.restore-${at}.db.partial`)

const noteIn = (folder: string): string => join(folder, 'owner')

/** Notes this process in the folder of its restore. */
export const noteRestoring = (folder: string): void =>
  writeFileSync(noteIn(folder), `${newOwnerId()}\n`, { mode: 0o600, flag: 'wx' })

/** A restore without a known owner, on another machine for example, is removed after a day. */
function isAbandoned(folder: string): boolean {
  const owner = existsSync(noteIn(folder)) ? ownerState(readFileSync(noteIn(folder), 'utf8').trim()) : 'unknown'
  const age = systemClock.now().getTime() - (statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? 0)
  return owner === 'gone' || (owner === 'unknown' && age > daysMs(1))
}

export function removeInterruptedRestores(config: Config): void {
  const database = databaseFile(config.databaseUrl)
  for (const name of readdirSync(config.dataDir)) {
    const at = /^\.restore-(.+)\.partial$/.exec(name)?.[1]
    if (at === undefined || at.endsWith('.db') || !isAbandoned(unpackFolder(config, at))) continue
    if (database !== null) rmSync(waitingDatabase(database, at), { force: true })
    rmSync(unpackFolder(config, at), { recursive: true, force: true })
  }
}
