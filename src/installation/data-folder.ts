// Opens the database, stores the secret and publishes the contract in the data folder. The server
// and all commands use these functions, so that files always get the same permissions.
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { makeFolder } from '../../db/disk.ts'
import { processesWithOpen } from '../../db/open-processes.ts'
import { storageFaultOf } from '../../db/storage-errors.ts'
import { databaseFile, displayUrl, openStore, type Store, type StoreOptions } from '../../db/store.ts'
import { type Config, ConfigError } from '../config/config.ts'
import { accessProblem, isDiskFull } from './access-problems.ts'
import { writeFileAtomic } from './atomic-file.ts'
import { assertNotLost, filesFolder, markInstalled, markInstalling, restoringMark, secretFile } from './installation.ts'
import { generatedContract, packageRoot } from './package-info.ts'
import { type Published, publish, publishedIn } from './published-contract.ts'

export { filesFolder, restoringMark, secretFile } from './installation.ts'

/** Returns the data folder, and the folder of the database if it is another one. */
export function writtenFolders({ dataDir, databaseUrl }: Config): string[] {
  const file = databaseFile(databaseUrl)
  if (file === null) return [dataDir]
  const folder = dirname(existsSync(file) ? realpathSync(file) : file)
  const isInside = resolve(folder) === (existsSync(dataDir) ? realpathSync(dataDir) : resolve(dataDir))
  return isInside ? [dataDir] : [dataDir, folder]
}

/** Returns the files and folders that a server must be able to write. Some may not exist. */
function writtenPaths(config: Config): string[] {
  const file = databaseFile(config.databaseUrl)
  const files = file === null ? [] : [file, `${file}-wal`, `${file}-shm`]
  return [...writtenFolders(config), ...files, secretFile(config), filesFolder(config)]
}

/** Returns the options for a PostgreSQL database. */
export const serverOptions = (config: Config): Pick<StoreOptions, 'postgres'> => ({
  postgres: {
    max: config.databaseConnections,
    isPooled: config.databasePooler === 'transaction',
    replicaUrl: config.databaseReplicaUrl,
  },
})

/**
 * Opens the database. Creates a missing data folder with mode 700. Throws ConfigError when the data
 * cannot be used, and when the database is lost, because a lost database must not be replaced by a
 * new one.
 */
export async function openData(config: Config): Promise<Store> {
  try {
    makeFolder(config.dataDir, 0o700)
  } catch (cause) {
    throw configError('ACCORD_DATA_DIR', `is ${config.dataDir}, which cannot be created: ${messageOf(cause)}.`, cause)
  }
  if (existsSync(restoringMark(config)))
    throw new ConfigError(
      'ACCORD_DATA_DIR',
      `is ${config.dataDir}, where a restore is unfinished. Let it finish, or run it again: accord restore <backup> --force`,
    )
  const problem = accessProblem(writtenPaths(config))
  if (problem !== null) throw new ConfigError('ACCORD_DATA_DIR', `is ${config.dataDir}, and ${problem}.`)
  const { state, id } = await assertNotLost(config)
  try {
    if (state === 'empty') markInstalling(config)
    const store = openStore(config.databaseUrl, {
      ...serverOptions(config),
      groupMs: config.groupCommitMs,
      folders: [config.dataDir],
    })
    if (state === 'installed') markInstalled(config, id)
    return store
  } catch (cause) {
    const full = writtenFolders(config).find(isDiskFull)
    if (full !== undefined)
      throw configError(
        'ACCORD_DATA_DIR',
        `is ${config.dataDir}, and the disk of ${full} is full. Free some space, then start again. Nothing was changed.`,
        cause,
      )
    throw configError(
      'ACCORD_DATABASE_URL',
      `is ${displayUrl(config.databaseUrl)}, which ${lockOf(config, cause) ?? `cannot be opened: ${messageOf(cause)}.`}`,
      cause,
    )
  }
}

/** Returns the end of the sentence about a database that another program has locked, or null. */
function lockOf({ databaseUrl }: Config, cause: unknown): string | null {
  const file = databaseFile(databaseUrl)
  if (file === null || storageFaultOf(cause) !== 'busy') return null
  const holders = processesWithOpen(file)
  const whose = holders.length === 0 ? '' : `: ${holders.join(', ')}`
  return `another program has locked${whose}. End that program or wait for it, then try again. Nothing was changed.`
}

/** Returns the configured or stored secret, or null. */
export function presentSecret(config: Config): string | null {
  if (config.secret !== null) return config.secret
  const path = secretFile(config)
  const text = existsSync(path) ? readFileSync(path, 'utf8').trim() : ''
  return text.length >= 32 ? text : null
}

/**
 * Returns ACCORD_SECRET, or else the secret in the data folder, which is generated if it is
 * missing. Throws ConfigError when the file is invalid or cannot be written.
 */
export function getOrCreateSecret(config: Config): { secret: string; isNew: boolean } {
  if (config.secret !== null) return { secret: config.secret, isNew: false }
  const path = secretFile(config)
  try {
    const secret = randomBytes(32).toString('base64url')
    if (writeFileAtomic(path, `${secret}\n`, { mode: 0o600, isFirst: true })) return { secret, isNew: true }
  } catch (cause) {
    throw configError('ACCORD_SECRET', `is not set and ${path} cannot be written: ${messageOf(cause)}.`, cause)
  }
  const secret = readFileSync(path, 'utf8').trim()
  if (secret.length < 32)
    throw new ConfigError(
      'ACCORD_SECRET',
      `is not set and ${path} holds less than 32 characters. Restore that file from a backup; if nothing was ever installed here, delete it.`,
    )
  return { secret, isNew: false }
}

/** Returns a function that reads the contract for the documentation (published-contract.ts). */
export const openPublished = (config: Config): (() => Published | null) =>
  publishedIn(config.dataDir, join(packageRoot, 'openapi.yaml'))

/**
 * Publishes the contract that this program was generated from. Returns false if it is already
 * published.
 */
export function publishContract(config: Config): boolean {
  const generated = generatedContract()
  const hash = generated['x-contract-hash']
  const known = openPublished(config)()
  if (known?.hash === hash && known?.json.equals(Buffer.from(JSON.stringify(generated)))) return false
  publish(config.dataDir, generated)
  return true
}

function configError(variable: string, problem: string, cause: unknown): ConfigError {
  const error = new ConfigError(variable, problem)
  error.cause = cause
  return error
}

const messageOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))
