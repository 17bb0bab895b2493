// `accord backup`: makes a consistent copy of a whole installation while servers and workers write.
// The copy gets its final name only when it is complete, synced and verified.
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Kysely } from 'kysely'
import { isFull, megabytes, noRoomFor, syncPath } from '../../../db/disk.ts'
import { installationOf } from '../../../db/installation.ts'
import { copyStore, type DatabaseCopy, engineOf, isInMemory, openStore, type Store } from '../../../db/store.ts'
import { tableChecksums } from '../../../db/table-checksums.ts'
import type { Config } from '../../config/config.ts'
import { writeFileAtomic } from '../../installation/atomic-file.ts'
import { presentSecret, restoringMark, secretFile, serverOptions } from '../../installation/data-folder.ts'
import { checkEncryptedValues } from '../../installation/encrypted-values.ts'
import { backupNote, backupsFolder } from '../../installation/installation.ts'
import { openFiles } from '../../installation/open-files.ts'
import { stamp, stopwatch, systemClock } from '../../kernel/runtime/clock.ts'
import { CommandError } from '../command-error.ts'
import { assertInstalled } from '../installed-store.ts'
import { counted, type ReportOptions, report, tellPhase } from '../report.ts'
import { type Collection, collect, copyFile, hashFile, syncFolders } from './bytes.ts'
import { examine, hasTable, listFileHashes, readDatabaseFacts, secretCheck } from './examine.ts'
import { removeInterruptedBackups, removeOldBackups, removeOwnerNote, writeOwnerNote } from './folder.ts'
import { backupEntries, backupName, contractNames, databaseEntry, type Manifest, writeManifest } from './manifest.ts'

export interface BackupOptions extends ReportOptions {
  to?: string
  keep?: string
  withoutSecret?: boolean
}

/**
 * The maximum number of times that one backup copies the database. The database is copied again
 * when a file was removed after the database copy and before the copy of the file.
 */
const maxSnapshots = 5

export async function backupCommand(config: Config, options: BackupOptions): Promise<void> {
  const elapsedMs = stopwatch()
  if (isInMemory(config.databaseUrl))
    throw new CommandError(
      'A database in memory (sqlite::memory:) ends with its server, so there is nothing to back up.',
    )
  await assertInstalled(config)
  if (existsSync(restoringMark(config)))
    throw new CommandError('A restore of this data folder is unfinished. Finish it, then back up.')
  const keep = options.keep === undefined ? null : Number(options.keep)
  if (keep !== null && !(Number.isInteger(keep) && keep >= 1))
    throw new CommandError(`--keep must be a whole number from 1, not "${options.keep}".`)
  const folder = options.to === undefined ? backupsFolder(config) : resolve(options.to)

  const { path, manifest } = await backUp(config, folder, options.withoutSecret !== true)
  const rows = Object.values(manifest.tables).reduce((sum, table) => sum + table.rows, 0)
  const files = Object.values(manifest.files)
  const bytes = files.reduce((sum, size) => sum + size, 0)
  if (manifest.sealed.unreadable > 0)
    console.error(
      `The secret does not decrypt ${manifest.sealed.unreadable} of ${manifest.sealed.values} encrypted values. Run: accord doctor`,
    )
  if (manifest.lost_files.length > 0)
    console.error(
      `The contents of ${manifest.lost_files.length} files are missing from ${config.filesUrl === null ? 'the data folder' : 'the bucket'}, so the backup lacks them too. Run: accord doctor --deep`,
    )
  const { removed, others } = keep === null ? noneRemoved : removeOldBackups(folder, path, manifest, keep)
  const tables = Object.keys(manifest.tables).length
  const facts = { path, rows, tables, database_bytes: manifest.database.size, files: files.length, file_bytes: bytes }
  report(options, { ...facts, has_secret: manifest.secret.kept === 'here', removed, kept_of_others: others }, [
    `Backed up to ${path}`,
    `${rows} rows of ${tables} tables (${megabytes(manifest.database.size)}) and ${files.length} files (${megabytes(bytes)}), in ${(elapsedMs() / 1000).toFixed(1)} s; the copy is verified.`,
    secretSentence(manifest),
    ...(removed > 0 ? [`Removed ${counted(removed, 'older backup')}.`] : []),
    ...(others > 0 ? [`Kept ${counted(others, 'backup')} of other installations in ${folder}.`] : []),
    `To test a restore, run: accord restore ${path} --verify`,
  ])
}

const noneRemoved = { removed: 0, others: 0 }

function secretSentence({ secret: { kept } }: Manifest): string {
  if (kept === 'here')
    return 'The backup contains the secret, so it can be read in full by anyone who has it. Protect it.'
  if (kept === 'in ACCORD_SECRET')
    return 'The backup does not contain ACCORD_SECRET. Store it elsewhere: only it decrypts the secrets of webhooks and the mailbox password.'
  return 'The backup does not contain the secret. Store it elsewhere: only it decrypts the secrets of webhooks and the mailbox password.'
}

export async function backUp(
  config: Config,
  folder: string,
  withSecret: boolean,
): Promise<{ path: string; manifest: Manifest }> {
  const createdAt = stamp(systemClock.now())
  const path = join(folder, backupName(createdAt))
  const partial = join(folder, `.${backupName(createdAt)}.partial`)
  const store = openStore(config.databaseUrl, serverOptions(config))
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const installation = await installationOf(store)
    removeInterruptedBackups(folder, installation)
    await assertFreeSpace(store, folder)
    mkdirSync(partial, { mode: 0o700 })
    tellPhase('Copying the database and the files…')
    writeOwnerNote(partial, installation)
    const manifest = await writeBackup(partial, store, config, createdAt, withSecret)
    syncFolders(partial)
    tellPhase('Reading the copy to verify it…')
    const secret = presentSecret(config)
    await examine({ folder: partial, called: 'The copy', manifest, config, secret }).catch((cause: unknown) => {
      throw cause instanceof CommandError
        ? new CommandError(`Nothing was backed up. ${cause.message} Run: accord doctor`, cause)
        : cause
    })
    removeOwnerNote(partial)
    renameSync(partial, path)
    syncPath(folder)
    // This note stores the path of the last backup for `accord doctor` and for error messages,
    // because a backup may be in any folder.
    writeFileAtomic(backupNote(config), `${createdAt} ${path}\n`, { mode: 0o600 })
    return { path, manifest }
  } catch (cause) {
    rmSync(partial, { recursive: true, force: true })
    if (isFull(cause)) throw new CommandError(`The disk of ${folder} is full. Nothing was backed up.`, cause)
    throw permissionError(cause, folder) ?? cause
  } finally {
    await store.close()
  }
}

/**
 * Returns the error for missing permissions: either the backup folder cannot be written, or a
 * source file cannot be read. Returns null for any other cause.
 */
export function permissionError(cause: unknown, folder: string): CommandError | null {
  const { code = '', path } = cause as NodeJS.ErrnoException
  if (!['EACCES', 'EROFS', 'EPERM'].includes(code)) return null
  return path === undefined ||
    path === folder ||
    path.startsWith(join(folder, '/')) ||
    folder.startsWith(join(path, '/'))
    ? new CommandError(`This user cannot write to ${folder}. Choose another folder with --to.`, cause)
    : new CommandError(`This user cannot read ${path}. Run accord backup as the user that runs the server.`, cause)
}

async function assertFreeSpace(store: Store, folder: string): Promise<void> {
  const database = await store.dialect.copies.sizeOf(store.db as unknown as Kysely<unknown>)
  const problem = noRoomFor(database + (await sizeOfFiles(store)), folder)
  if (problem !== null) throw new CommandError(`There is not enough space for a backup: ${problem}.`)
}

/** Returns the size of all files in bytes. Equal files are stored and counted once. */
async function sizeOfFiles(store: Store): Promise<number> {
  if (!(await hasTable(store, 'files'))) return 0
  const each = store.db.selectFrom('files').select(['sha256', 'size']).distinct().as('each')
  const { bytes } = await store.db
    .selectFrom(each)
    .select(({ fn }) => fn.sum<number | null>('size').as('bytes'))
    .executeTakeFirstOrThrow()
  return Number(bytes)
}

async function writeBackup(
  partial: string,
  store: Store,
  config: Config,
  createdAt: string,
  withSecret: boolean,
): Promise<Manifest> {
  const engine = engineOf(config.databaseUrl)
  const database = join(partial, databaseEntry(engine))
  mkdirSync(join(partial, backupEntries.files), { mode: 0o700 })
  const bytes = collect(openFiles(config), join(partial, backupEntries.files))
  const { copy, lost } = await copyDatabaseAndFiles(store, database, bytes)
  try {
    const contract: Manifest['contract'] = {}
    for (const name of contractNames)
      if (existsSync(join(config.dataDir, name)))
        contract[name] = await copyFile(join(config.dataDir, name), join(partial, name))
    const secret = presentSecret(config)
    const { values, unreadable } = await checkEncryptedValues(copy.db, config, secret)
    return writeManifest(partial, {
      created_at: createdAt,
      installation: await installationOf(copy),
      engine,
      ...(await readDatabaseFacts(copy)),
      database: await hashFile(database),
      tables: await tableChecksums(copy),
      files: bytes.sizes(),
      lost_files: lost,
      contract,
      secret: {
        kept: copySecret(partial, config, withSecret),
        check: secret === null ? null : secretCheck(secret, createdAt),
      },
      sealed: { values, unreadable: unreadable.length },
    })
  } finally {
    await copy.close()
  }
}

/** Copies the secret into the backup if `isWanted`. Returns where the secret is stored. */
function copySecret(partial: string, config: Config, isWanted: boolean): Manifest['secret']['kept'] {
  if (presentSecret(config) === null) return 'nowhere'
  if (config.secret !== null) return 'in ACCORD_SECRET'
  if (!isWanted) return 'elsewhere'
  const copy = join(partial, backupEntries.secret)
  writeFileSync(copy, readFileSync(secretFile(config)), { mode: 0o600, flag: 'wx' })
  syncPath(copy)
  return 'here'
}

/**
 * Copies the database and the contents of all files that its rows refer to. Returns the database
 * copy and the hashes of missing files. Contents are copied before the database, so that a later
 * removal cannot lose them. Contents of files that were added meanwhile are copied after the
 * database.
 */
async function copyDatabaseAndFiles(
  store: Store,
  database: string,
  bytes: Collection,
): Promise<{ copy: DatabaseCopy; lost: string[] }> {
  const now = await store.snapshot()
  try {
    await bytes.take(await listFileHashes({ ...now, dialect: store.dialect }))
  } finally {
    await now.close()
  }
  let before: string[] = []
  for (let taken = 1; ; taken++) {
    const copy = await copyStore(store, database)
    let isLast = false
    try {
      const hashes = await listFileHashes(copy)
      const missing = await bytes.take(hashes)
      // If a file is missing after two copies of the database, its row has no contents: the
      // installation lost the contents earlier.
      isLast = missing.every((each) => before.includes(each)) || taken === maxSnapshots
      if (isLast) {
        bytes.keepOnly(new Set(hashes))
        return { copy, lost: missing }
      }
      before = missing
    } finally {
      if (!isLast) await copy.close()
    }
  }
}
