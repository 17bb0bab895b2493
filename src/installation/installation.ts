// Which installation the data folder belongs to. A database that is gone, empty or another one must not be taken for a first start:
// a new database would refer to none of the files, and the clean-up would remove them.
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type FoundInstallation, findInstallation } from '../../db/installation.ts'
import { storageFaultOf } from '../../db/storage-errors.ts'
import { databaseFile } from '../../db/store.ts'
import { type Config, ConfigError } from '../config/config.ts'
import { writeFileAtomic } from './atomic-file.ts'

/** Exists while `accord restore` exchanges the data. A process that opened the folder now would get half of each. */
export const restoringMark = (config: Config): string => join(config.dataDir, 'restoring')
export const filesFolder = (config: Config): string => join(config.dataDir, 'files')
export const secretFile = (config: Config): string => join(config.dataDir, 'secret')
export const backupsFolder = (config: Config): string => join(config.dataDir, 'backups')
export const backupNote = (config: Config): string => join(config.dataDir, 'last-backup')
/** Holds the id of the installation, once there is one. */
export const installedMark = (config: Config): string => join(config.dataDir, 'installed')
/** There from before the first file is written until `installed` is: a first installation that was cut off goes on. */
export const installingMark = (config: Config): string => join(config.dataDir, 'installing')

/** When the last backup of these data was made, and where it was put then; null when there is none. */
export function lastBackup(config: Config): { at: string; path: string } | null {
  const path = backupNote(config)
  const note = existsSync(path) ? readFileSync(path, 'utf8') : ''
  const [, at = '', folder = ''] = /^(\S+) (.+)\n/.exec(note) ?? []
  return Number.isNaN(Date.parse(at)) ? null : { at, path: folder }
}

/** A volume of its own brings `lost+found`. */
const hasEntries = (folder: string): boolean =>
  existsSync(folder) && readdirSync(folder).some((name) => name !== 'lost+found')

/** The files and folders that show that there was an installation, by the names that people see. */
export function listTraces(config: Config): string[] {
  const { dataDir, databaseUrl } = config
  const found = (names: readonly string[]): string[] => names.filter((name) => existsSync(join(dataDir, name)))
  // A database in memory is empty with each start, and its server leaves a secret and files behind.
  if (databaseFile(databaseUrl) === null) return found(['installed'])
  const folders = [
    ...(hasEntries(filesFolder(config)) ? ['files/'] : []),
    ...(hasEntries(backupsFolder(config)) ? ['backups/'] : []),
  ]
  return [...folders, ...found(['installed', 'last-backup', 'secret', 'openapi.json'])]
}

/** The problem of the database, in a sentence without its subject; null when it may be opened or created. */
export function findLoss(config: Config): { problem: string | null; found: FoundInstallation } {
  // In this order: another process that installs writes `installing` first, then the rest, and removes it after its seeds.
  const seen = listTraces(config)
  const isFirstStart = existsSync(installingMark(config)) && seen.every((name) => name === 'secret')
  const mark = installedMark(config)
  const id = existsSync(mark) ? readFileSync(mark, 'utf8').trim() : null
  const found = findInstallation(config.databaseUrl)
  if (found.state === 'empty' && seen.length > 0 && !isFirstStart) return { problem: emptinessOf(config, seen), found }
  if (found.state === 'installed' && id !== null && id !== '' && id !== found.id)
    return { problem: `belongs to another installation than ${config.dataDir}`, found }
  return { problem: null, found }
}

const emptinessOf = ({ databaseUrl }: Config, seen: readonly string[]): string =>
  databaseFile(databaseUrl) === null
    ? 'is in memory, but the folder holds the files of an installation'
    : `is gone or empty, but ${listed(seen)} of an installation ${seen.length > 1 ? 'are' : 'is'} there`

/** Throws when the database was lost or exchanged. Changes nothing. */
export function assertNotLost(config: Config): FoundInstallation {
  const { problem, found } = findLoss(config)
  if (problem === null) return found
  const { dataDir, databaseUrl } = config
  const instead =
    found.state === 'installed'
      ? `Put the right database there, or, if this one is to be used from now on, remove ${installedMark(config)}.`
      : databaseFile(databaseUrl) === null
        ? 'Choose another ACCORD_DATA_DIR for a database in memory.'
        : `${restoreAdvice(config)}. To begin a new installation instead: accord install --new (it moves what is there aside).`
  throw new ConfigError(
    'ACCORD_DATA_DIR',
    `is ${dataDir}, and its database ${databaseUrl} ${problem}. Nothing was changed. ${instead}`,
  )
}

/** How to bring the data back: from the last backup, where that is known and there. Ends with the command. */
export function restoreAdvice(config: Config): string {
  const last = lastBackup(config)
  if (last === null) return 'Restore a backup: accord restore <path> --force'
  return existsSync(last.path)
    ? `Restore the last backup, of ${last.at}: accord restore ${last.path} --force`
    : `Restore a backup (the last one, of ${last.at}, is not at ${last.path} any more): accord restore <path> --force`
}

const listed = (names: readonly string[]): string =>
  names.length < 2 ? names.join() : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`

/** Before anything of a new installation is written. */
export function markInstalling(config: Config): void {
  if (databaseFile(config.databaseUrl) !== null)
    writeFileAtomic(installingMark(config), '', { isFirst: true, mode: 0o600 })
}

/** Once the database is seeded, or was exchanged for that of a backup. */
export function markInstalled(config: Config, id: string | null): void {
  if (id === null || databaseFile(config.databaseUrl) === null) return
  const mark = installedMark(config)
  try {
    if (!existsSync(mark) || readFileSync(mark, 'utf8').trim() !== id) writeFileAtomic(mark, `${id}\n`, { mode: 0o600 })
    rmSync(installingMark(config), { force: true })
  } catch (cause) {
    // A full or read-only disk: the next start writes it.
    if (storageFaultOf(cause) === null) throw cause
  }
}
