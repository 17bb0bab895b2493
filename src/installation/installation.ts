// Detects a lost database: missing, empty or from another installation. Without this check, the
// server would create a new database, and the cleanup would delete all uploaded files, because the
// new database does not refer to them.
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { type FoundInstallation, findInstallation } from '../../db/installation.ts'
import { storageFaultOf } from '../../db/storage-errors.ts'
import { displayUrl, engineOf, isInMemory } from '../../db/store.ts'
import { type Config, ConfigError } from '../config/config.ts'
import { writeFileAtomic } from './atomic-file.ts'

/**
 * The path of the mark that exists while `accord restore` replaces the data. No process may open
 * the data then, because a part is still old.
 */
export const restoringMark = (config: Config): string => join(config.dataDir, 'restoring')
export const filesFolder = (config: Config): string => join(config.dataDir, 'files')
export const secretFile = (config: Config): string => join(config.dataDir, 'secret')
export const backupsFolder = (config: Config): string => join(config.dataDir, 'backups')
export const backupNote = (config: Config): string => join(config.dataDir, 'last-backup')
/** The path of the file with the installation id. It exists after a complete installation. */
export const installedMark = (config: Config): string => join(config.dataDir, 'installed')
/**
 * The path of the mark that exists during an installation. With the mark, an interrupted
 * installation continues at the next start.
 */
export const installingMark = (config: Config): string => join(config.dataDir, 'installing')

/**
 * Returns the time and the folder of the last backup, or null. The command `accord backup` writes
 * them to a file.
 */
export function lastBackup(config: Config): { at: string; path: string } | null {
  const path = backupNote(config)
  const note = existsSync(path) ? readFileSync(path, 'utf8') : ''
  const [, at = '', folder = ''] = /^(\S+) (.+)\n/.exec(note) ?? []
  return Number.isNaN(Date.parse(at)) ? null : { at, path: folder }
}

/** Returns the complete backups in the folder of backups, and the last one in another folder. */
export function knownBackups(config: Config): { name: string; created_at: string }[] {
  const folder = backupsFolder(config)
  const last = lastBackup(config)
  const names = existsSync(folder) ? readdirSync(folder) : []
  if (last !== null && existsSync(last.path)) names.push(basename(last.path))
  return [...new Set(names)].sort().flatMap((name) => {
    const [, day, hour, minute, second, ms] = /^(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d)-(\d{3})Z$/.exec(name) ?? []
    return day === undefined ? [] : [{ name, created_at: `${day}T${hour}:${minute}:${second}.${ms}Z` }]
  })
}

/** Returns whether the folder has entries other than `lost+found`, which every ext4 volume has. */
const hasEntries = (folder: string): boolean =>
  existsSync(folder) && readdirSync(folder).some((name) => name !== 'lost+found')

/**
 * Returns the files and folders that prove an earlier installation, relative to the data folder.
 */
export function listTraces(config: Config): string[] {
  const { dataDir, databaseUrl } = config
  const found = (names: readonly string[]): string[] => names.filter((name) => existsSync(join(dataDir, name)))
  // A server with a database in memory leaves a secret and files behind, but its database is always
  // empty at the start. So only `installed` proves an installation.
  if (isInMemory(databaseUrl)) return found(['installed'])
  const folders = [
    ...(hasEntries(filesFolder(config)) ? ['files/'] : []),
    ...(hasEntries(backupsFolder(config)) ? ['backups/'] : []),
  ]
  return [...folders, ...found(['installed', 'last-backup', 'secret', 'openapi.json'])]
}

/** Returns the installation that the configured database belongs to. */
export const lookForInstallation = ({ databaseUrl, databasePooler }: Config): Promise<FoundInstallation> =>
  findInstallation(databaseUrl, { isPooled: databasePooler === 'transaction' })

/**
 * Returns the problem of a lost database as the end of a sentence, or null when the database may be
 * opened or created.
 */
export async function findLoss(config: Config): Promise<{ problem: string | null; found: FoundInstallation }> {
  // The traces must be listed before the installing mark is checked. A concurrent installation
  // creates the mark first and removes it last, so its files do not count as those of a lost
  // database.
  const seen = listTraces(config)
  const isFirstStart = existsSync(installingMark(config)) && seen.every((name) => name === 'secret')
  const mark = installedMark(config)
  const id = existsSync(mark) ? readFileSync(mark, 'utf8').trim() : null
  const found = await lookForInstallation(config)
  if (found.state === 'empty' && seen.length > 0 && !isFirstStart) return { problem: emptinessOf(config, seen), found }
  if (found.state === 'installed' && id !== null && id !== '' && id !== found.id)
    return { problem: `belongs to another installation than ${config.dataDir}`, found }
  return { problem: null, found }
}

const emptinessOf = ({ databaseUrl }: Config, seen: readonly string[]): string =>
  isInMemory(databaseUrl)
    ? 'is in memory, but the folder contains the files of an installation'
    : `is gone or empty, but ${listed(seen)} of an installation ${seen.length > 1 ? 'exist' : 'exists'}`

/**
 * Throws ConfigError for a lost database, the database of another installation, or an unusable
 * database server.
 */
export async function assertNotLost(config: Config): Promise<FoundInstallation> {
  if (statSync(config.dataDir, { throwIfNoEntry: false })?.isDirectory() === false)
    throw new ConfigError('ACCORD_DATA_DIR', `is ${config.dataDir}, which is a file. Set it to a folder.`)
  const { problem, found } = await findLoss(config)
  const { dataDir, databaseUrl } = config
  if (found.problem !== null)
    throw new ConfigError('ACCORD_DATABASE_URL', `is ${displayUrl(databaseUrl)}, and ${found.problem}.`)
  if (problem === null) return found
  const instead =
    found.state === 'installed'
      ? `Put the right database there. To use this one from now on, delete ${installedMark(config)}.`
      : isInMemory(databaseUrl)
        ? 'Choose another ACCORD_DATA_DIR for a database in memory.'
        : `${restoreAdvice(config)}. To begin a new installation instead: accord install --new (it moves the old ${engineOf(databaseUrl) === 'postgres' ? 'files' : 'data'} aside).`
  throw new ConfigError(
    'ACCORD_DATA_DIR',
    `is ${dataDir}, and its database ${displayUrl(databaseUrl)} ${problem}. Nothing was changed. ${instead}`,
  )
}

/** Returns a sentence that advises to restore a backup and ends with the command. */
export function restoreAdvice(config: Config): string {
  const last = lastBackup(config)
  if (last === null) return 'Restore a backup: accord restore <path> --force'
  return existsSync(last.path)
    ? `Restore the last backup, made at ${last.at}: accord restore ${last.path} --force`
    : `Restore a backup (the last one, made at ${last.at}, is no longer at ${last.path}): accord restore <path> --force`
}

const listed = (names: readonly string[]): string =>
  names.length < 2 ? names.join() : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`

/** Creates the installing mark. Must be called before a new installation writes any other file. */
export function markInstalling(config: Config): void {
  if (!isInMemory(config.databaseUrl)) writeFileAtomic(installingMark(config), '', { isFirst: true, mode: 0o600 })
}

/**
 * Stores the installation id and removes the installing mark. Called after the database is seeded
 * or restored.
 */
export function markInstalled(config: Config, id: string | null): void {
  if (id === null || isInMemory(config.databaseUrl)) return
  const mark = installedMark(config)
  try {
    if (!existsSync(mark) || readFileSync(mark, 'utf8').trim() !== id) writeFileAtomic(mark, `${id}\n`, { mode: 0o600 })
    rmSync(installingMark(config), { force: true })
  } catch (cause) {
    // On a full or read-only disk, the next start writes the mark.
    if (storageFaultOf(cause) === null) throw cause
  }
}
