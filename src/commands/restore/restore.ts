// `accord restore`: unpacks and verifies a backup. Without --verify, it then replaces the present
// data with the backup. The present data stay untouched until the whole backup is verified, and are
// then moved aside, never deleted.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { isFull, makeFolder, megabytes, noRoomFor } from '../../../db/disk.ts'
import { processesWithOpen } from '../../../db/open-processes.ts'
import { checkpointIfUnused, databaseFile, displayUrl, engineOf, isInMemory, openStore } from '../../../db/store.ts'
import type { Config } from '../../config/config.ts'
import { filesFolder, presentSecret, restoringMark, secretFile } from '../../installation/data-folder.ts'
import { noteRestoring, removeInterruptedRestores, unpackFolder } from '../../installation/interrupted-restores.ts'
import { openBucket, openFiles } from '../../installation/open-files.ts'
import { placeOf } from '../../kernel/files/file-store.ts'
import type { ObjectStorage } from '../../kernel/files/s3-client.ts'
import { stamp, stopwatch, systemClock } from '../../kernel/runtime/clock.ts'
import { copyFile, isMissing, sizeOf, syncFolders } from '../backup/bytes.ts'
import { examine, secretCheck } from '../backup/examine.ts'
import { backupEntries, backupName, databaseEntry, type Manifest, readManifest } from '../backup/manifest.ts'
import { CommandError } from '../command-error.ts'
import { counted, type ReportOptions, report, tellPhase } from '../report.ts'
import { exchangeData, exchangeFile } from './exchange.ts'
import { assertServerNotOpen, assertUsable, endSessions, exchangeOnServer } from './server.ts'

export interface RestoreOptions extends ReportOptions {
  verify?: boolean
  force?: boolean
}

export async function restoreCommand(config: Config, backup: string, options: RestoreOptions): Promise<void> {
  const elapsedMs = stopwatch()
  const from = resolve(backup)
  assertFolder(from)
  const manifest = readManifest(from)
  if (options.verify) {
    tellPhase('Unpacking the backup and reading it…')
    const { due } = await verifyBackup(config, from, manifest)
    const found = remarks(config, from, manifest, due)
    report(options, { ...factsOf(from, manifest), restored: false, pending_migrations: due, remarks: found }, [
      `${describe(manifest)}\nThe backup is complete; verified in ${(elapsedMs() / 1000).toFixed(1)} s.`,
      ...found,
    ])
    return
  }
  tellPhase('Verifying the backup, then moving it into place…')
  const { due, aside } = await restore(config, from, manifest, options.force === true)
  const found = remarks(config, from, manifest, due)
  report(options, { ...factsOf(from, manifest), restored: true, aside, pending_migrations: due, remarks: found }, [
    `${describe(manifest)}\nRestored into ${config.dataDir}${config.filesUrl === null ? '' : ` and ${openFiles(config).place}`} in ${(elapsedMs() / 1000).toFixed(1)} s.`,
    ...(aside === null ? [] : [`The former data are in ${aside}; delete them when you no longer need them.`]),
    ...(config.filesUrl === null
      ? []
      : [
          'The files of the former data stay in the bucket. A week after the server has started, its clean-up deletes those without a record. Copy the bucket first if you may go back.',
        ]),
    ...found,
    ...consequences,
    due.length > 0 ? 'Then run: accord migrate, and: accord start' : 'Serve it with: accord start',
  ])
}

const factsOf = (from: string, { created_at, version, tables, files }: Manifest) => ({
  backup: from,
  created_at,
  version,
  rows: Object.values(tables).reduce((sum, table) => sum + table.rows, 0),
  files: Object.keys(files).length,
})

function assertFolder(from: string): void {
  const found = statSync(from, { throwIfNoEntry: false })
  if (!found) throw new CommandError(`${from} does not exist.`)
  if (found.isDirectory()) return
  throw new CommandError(
    `${from} is a file, but a backup is a folder. To use a copy made before a migration, stop the server, move the database and its -wal and -shm files away, and copy this file to the place of the database.`,
  )
}

function describe({ created_at, version, tables, files, database, last_migration, newest_event }: Manifest): string {
  const rows = Object.values(tables).reduce((sum, table) => sum + table.rows, 0)
  const bytes = Object.values(files).reduce((sum, size) => sum + size, database.size)
  return `Backup of ${created_at}, Accord CRM ${version}: ${rows} rows of ${Object.keys(tables).length} tables, ${Object.keys(files).length} files, ${megabytes(bytes)}; migration ${last_migration}, event ${newest_event}.`
}

function remarks(config: Config, from: string, manifest: Manifest, due: readonly string[]): string[] {
  const found: string[] = []
  if (due.length > 0) found.push(`It is older than this program by ${counted(due.length, 'migration')}.`)
  if (secretFor(config, from, manifest) === null && manifest.sealed.values > 0)
    found.push(
      `No secret decrypts its ${manifest.sealed.values} encrypted values. Before you start, put the secret it was made with into ${secretFile(config)}, or set ACCORD_SECRET.`,
    )
  if (manifest.sealed.unreadable > 0)
    found.push(`${manifest.sealed.unreadable} encrypted values were already unreadable when the backup was made.`)
  if (manifest.lost_files.length > 0)
    found.push(`The contents of ${manifest.lost_files.length} files were already missing when the backup was made.`)
  return found
}

/** Sentences about side effects of a restore that are easy to forget. */
const consequences = [
  'Passwords, tokens and permissions are those of the backup: anything changed or revoked since is valid again. Users with a cookie must sign in again.',
  'Jobs that were waiting at the time of the backup run again: e-mails and webhooks may be sent twice.',
  'Event numbers continue from the backup: readers of /events must start over.',
] as const

/**
 * Returns the secret for the restored values: ACCORD_SECRET, or else the secret in the backup, or
 * else the present secret if the backup was made with it. Returns null when no secret fits.
 */
function secretFor(config: Config, from: string, manifest: Manifest): string | null {
  if (config.secret !== null) return config.secret
  if (manifest.secret.kept === 'here') {
    const secret = presentSecret({ ...config, dataDir: from })
    if (secret === null) throw new CommandError(`${from} is damaged: its secret is missing.`)
    return secret
  }
  const present = presentSecret(config)
  return present !== null && secretCheck(present, manifest.created_at) === manifest.secret.check ? present : null
}

/**
 * Unpacks the backup into a temporary folder, verifies the unpacked data, and removes the folder.
 */
async function verifyBackup(config: Config, from: string, manifest: Manifest): Promise<{ due: string[] }> {
  const folder = mkdtempSync(join(tmpdir(), 'accord-verify-'))
  try {
    return await unpack(config, from, manifest, folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function unpack(config: Config, from: string, manifest: Manifest, folder: string): Promise<{ due: string[] }> {
  const problem = noRoomFor(sizeOf(from), folder)
  if (problem !== null) throw new CommandError(`There is not enough space to unpack the backup: ${problem}.`)
  const files = Object.keys(manifest.files).map((sha256) => join(backupEntries.files, placeOf('', sha256)))
  const secret = manifest.secret.kept === 'here' ? [backupEntries.secret] : []
  try {
    for (const name of [databaseEntry(manifest.engine), ...Object.keys(manifest.contract), ...secret, ...files]) {
      mkdirSync(dirname(join(folder, name)), { recursive: true, mode: 0o700 })
      await copyFile(join(from, name), join(folder, name)).catch((cause: unknown) => {
        throw isMissing(cause) ? new CommandError(`${from} is damaged: ${name} is missing.`, cause) : cause
      })
    }
    syncFolders(folder)
  } catch (cause) {
    throw isFull(cause) ? new CommandError(`The disk of ${folder} is full. Nothing was changed.`, cause) : cause
  }
  return examine({ folder, called: from, manifest, config, secret: secretFor(config, from, manifest) })
}

async function hasPresentData(config: Config): Promise<boolean> {
  const database = databaseFile(config.databaseUrl)
  const paths = [...(database === null ? [] : [database]), secretFile(config), filesFolder(config)]
  const isFilled = (path: string): boolean => !statSync(path).isDirectory() || readdirSync(path).length > 0
  if (paths.some((path) => existsSync(path) && isFilled(path))) return true
  return database === null && (await assertUsable(config)).hasTables
}

async function restore(config: Config, from: string, manifest: Manifest, isForced: boolean) {
  const { databaseUrl } = config
  const database = databaseFile(databaseUrl)
  if (isInMemory(databaseUrl))
    throw new CommandError(
      'A database in memory (sqlite::memory:) ends with its server, so nothing can be restored into it.',
    )
  if (engineOf(databaseUrl) !== manifest.engine)
    throw new CommandError(
      `${from} is a backup of the engine ${manifest.engine}, and ACCORD_DATABASE_URL is ${displayUrl(databaseUrl)}. Set it to a ${manifest.engine} database.`,
    )
  if (!isForced && !existsSync(restoringMark(config)) && (await hasPresentData(config)))
    throw new CommandError(
      `${config.dataDir} ${database === null ? `or its database ${displayUrl(databaseUrl)} ` : ''}already contains data. To move them aside and restore, run: accord restore ${from} --force. Nothing is deleted.`,
    )
  makeFolder(config.dataDir, 0o700)
  await assertUnused(config)
  removeInterruptedRestores(config)
  const at = backupName(stamp(systemClock.now()))
  const folder = unpackFolder(config, at)
  mkdirSync(folder, { mode: 0o700 })
  try {
    noteRestoring(folder)
    const { due } = await unpack(config, from, manifest, folder)
    const bucket = openBucket(config)
    if (bucket !== null) await fillBucket(bucket, join(folder, backupEntries.files), manifest)
    const unpacked = join(folder, databaseEntry(manifest.engine))
    if (database !== null) await endSessionsOf(unpacked)
    const aside = await exchangeData(config, {
      database:
        database === null
          ? exchangeOnServer({ config, manifest, from, unpacked, at })
          : exchangeFile(unpacked, database, at, () => assertNotOpen(database)),
      folder,
      keepsFiles: bucket !== null,
      at,
      installation: manifest.installation,
      staysSecret:
        manifest.secret.kept !== 'here' && config.secret === null && secretFor(config, from, manifest) !== null,
      isForced,
    })
    return { due, aside }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * Uploads the unpacked files to the bucket and removes them from `folder`. An existing object of
 * the same size is kept, because its key is the hash of its contents. Other objects also stay; the
 * clean-up finds objects without a record.
 */
async function fillBucket(bucket: ObjectStorage, folder: string, { files }: Manifest): Promise<void> {
  for (const [sha256, size] of Object.entries(files)) {
    const key = placeOf('', sha256)
    if ((await bucket.sizeOf(key)) !== size) await bucket.put(key, placeOf(folder, sha256), { size, sha256 })
  }
  rmSync(folder, { recursive: true, force: true })
}

async function endSessionsOf(file: string): Promise<void> {
  const store = openStore(`sqlite:${file}`)
  try {
    await endSessions(store)
  } finally {
    await store.close()
  }
}

/** Throws when a server, a worker or another command has the database open. */
export async function assertUnused(config: Config): Promise<void> {
  const database = databaseFile(config.databaseUrl)
  if (database !== null) assertNotOpen(database)
  else if (!isInMemory(config.databaseUrl)) await assertServerNotOpen(config)
}

/**
 * Throws when a connection to the database is open in any process. Tests the lock of SQLite, so a
 * killed process does not count.
 */
export function assertNotOpen(database: string): void {
  if (!existsSync(database) || checkpointIfUnused(database)) return
  const holders = processesWithOpen(database)
  const whose = holders.length === 0 ? '' : `, ${holders.join(', ')},`
  throw new CommandError(
    `A server, a worker or another program${whose} has ${database} open. Stop it first; nothing was changed.`,
  )
}
