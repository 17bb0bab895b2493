// Detects a lost database: one that is missing, empty or of another installation. It must not be
// taken for a first start, because the cleanup would delete all files that a new database does not
// refer to.
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type FoundInstallation, findInstallation } from '../../db/installation.ts'
import { storageFaultOf } from '../../db/storage-errors.ts'
import { databaseFile } from '../../db/store.ts'
import { type Config, ConfigError } from '../config/config.ts'
import { writeFileAtomic } from './atomic-file.ts'

/**
 * Exists while `accord restore` replaces the data, so that no process opens a mixture of old and
 * new.
 */
export const restoringMark = (config: Config): string => join(config.dataDir, 'restoring')
export const filesFolder = (config: Config): string => join(config.dataDir, 'files')
export const secretFile = (config: Config): string => join(config.dataDir, 'secret')
export const backupsFolder = (config: Config): string => join(config.dataDir, 'backups')
export const backupNote = (config: Config): string => join(config.dataDir, 'last-backup')
/** Contains the id of the installation. */
export const installedMark = (config: Config): string => join(config.dataDir, 'installed')
/**
 * Exists from the first step of an installation to the last, so that an interrupted one can be
 * continued.
 */
export const installingMark = (config: Config): string => join(config.dataDir, 'installing')

/** Time and folder of the last backup, as noted then; null when there is no note. */
export function lastBackup(config: Config): { at: string; path: string } | null {
  const path = backupNote(config)
  const note = existsSync(path) ? readFileSync(path, 'utf8') : ''
  const [, at = '', folder = ''] = /^(\S+) (.+)\n/.exec(note) ?? []
  return Number.isNaN(Date.parse(at)) ? null : { at, path: folder }
}

/** Ignores `lost+found`, which every ext4 volume has. */
const hasEntries = (folder: string): boolean =>
  existsSync(folder) && readdirSync(folder).some((name) => name !== 'lost+found')

/** Files and folders that prove an installation, as relative names for messages. */
export function listTraces(config: Config): string[] {
  const { dataDir, databaseUrl } = config
  const found = (names: readonly string[]): string[] => names.filter((name) => existsSync(join(dataDir, name)))
  // An in-memory database is empty at every start, although its server leaves a secret and files
  // behind.
  if (databaseFile(databaseUrl) === null) return found(['installed'])
  const folders = [
    ...(hasEntries(filesFolder(config)) ? ['files/'] : []),
    ...(hasEntries(backupsFolder(config)) ? ['backups/'] : []),
  ]
  return [...folders, ...found(['installed', 'last-backup', 'secret', 'openapi.json'])]
}

/** `problem` completes a sentence about the database; null when it may be opened or created. */
export function findLoss(config: Config): { problem: string | null; found: FoundInstallation } {
  // Traces are listed before the mark is read: an installing process writes the mark first and
  // removes it last.
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
    ? 'is in memory, but the folder contains the files of an installation'
    : `is gone or empty, but ${listed(seen)} of an installation ${seen.length > 1 ? 'exist' : 'exists'}`

/** Throws ConfigError for a lost or exchanged database. Changes nothing. */
export function assertNotLost(config: Config): FoundInstallation {
  const { problem, found } = findLoss(config)
  if (problem === null) return found
  const { dataDir, databaseUrl } = config
  const instead =
    found.state === 'installed'
      ? `Put the right database there. To use this one from now on, delete ${installedMark(config)}.`
      : databaseFile(databaseUrl) === null
        ? 'Choose another ACCORD_DATA_DIR for a database in memory.'
        : `${restoreAdvice(config)}. To begin a new installation instead: accord install --new (it moves the old data aside).`
  throw new ConfigError(
    'ACCORD_DATA_DIR',
    `is ${dataDir}, and its database ${databaseUrl} ${problem}. Nothing was changed. ${instead}`,
  )
}

/** Advice to restore a backup, the last one if it is known. Ends with the command. */
export function restoreAdvice(config: Config): string {
  const last = lastBackup(config)
  if (last === null) return 'Restore a backup: accord restore <path> --force'
  return existsSync(last.path)
    ? `Restore the last backup, made at ${last.at}: accord restore ${last.path} --force`
    : `Restore a backup (the last one, made at ${last.at}, is no longer at ${last.path}): accord restore <path> --force`
}

const listed = (names: readonly string[]): string =>
  names.length < 2 ? names.join() : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`

/** Called before a new installation writes any other file. */
export function markInstalling(config: Config): void {
  if (databaseFile(config.databaseUrl) !== null)
    writeFileAtomic(installingMark(config), '', { isFirst: true, mode: 0o600 })
}

/** Called once the database is seeded or restored. */
export function markInstalled(config: Config, id: string | null): void {
  if (id === null || databaseFile(config.databaseUrl) === null) return
  const mark = installedMark(config)
  try {
    if (!existsSync(mark) || readFileSync(mark, 'utf8').trim() !== id) writeFileAtomic(mark, `${id}\n`, { mode: 0o600 })
    rmSync(installingMark(config), { force: true })
  } catch (cause) {
    // On a full or read-only disk, the next start writes it.
    if (storageFaultOf(cause) === null) throw cause
  }
}
