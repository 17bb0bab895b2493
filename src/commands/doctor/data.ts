// The checks of `accord doctor` that concern the data folder: permissions, free space, the secret,
// file contents, backups and leftovers.
import { createHash } from 'node:crypto'
import {
  accessSync,
  constants,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, relative } from 'node:path'
import { freeBytes, megabytes } from '../../../db/disk.ts'
import { databaseFile, isInMemory, type Store } from '../../../db/store.ts'
import type { Config } from '../../config/config.ts'
import {
  filesFolder,
  presentSecret,
  restoringMark,
  secretFile,
  writtenFolders,
} from '../../installation/data-folder.ts'
import { checkEncryptedValues } from '../../installation/encrypted-values.ts'
import { backupsFolder, lastBackup } from '../../installation/installation.ts'
import { openBucket, openFiles } from '../../installation/open-files.ts'
import { secretProblem } from '../../installation/secret.ts'
import { readAll, type Source } from '../../kernel/files/download.ts'
import { trashOf } from '../../kernel/files/file-store.ts'
import { FileStorageError } from '../../kernel/files/s3-client.ts'
import { daysMs, systemClock } from '../../kernel/runtime/clock.ts'
import { trashDays } from '../../resources/files/clean-up.ts'
import { isMissing } from '../backup/bytes.ts'
import { hasTable } from '../backup/examine.ts'
import { installationAdvice } from '../installed-store.ts'
import { type CheckResult, Hint } from './check-result.ts'

export function checkDataFolder({ dataDir }: Config): CheckResult {
  const found = statSync(dataDir, { throwIfNoEntry: false })
  if (!found) return `it does not exist. ${installationAdvice}`
  if (!found.isDirectory()) return 'it is not a folder. Set ACCORD_DATA_DIR to one.'
  try {
    accessSync(dataDir, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch {
    return `this user cannot write to it. Run: chown -R "$USER" ${dataDir}`
  }
  return (found.mode & 0o007) === 0 ? null : `every user of this machine can open it. Run: chmod 700 ${dataDir}`
}

export function checkSecret(config: Config): CheckResult {
  if (config.secret !== null) return null
  const path = secretFile(config)
  const found = statSync(path, { throwIfNoEntry: false })
  if (!found) return 'ACCORD_SECRET is not set and the data folder has none. Run: accord install'
  if ((found.mode & 0o077) !== 0) return `other users can read ${path}. Run: chmod 600 ${path}`
  return readFileSync(path, 'utf8').trim().length >= 32
    ? null
    : `${path} holds less than 32 characters. Restore it from a backup.`
}

/** With fewer free bytes, the check reports a problem, because writes may fail at any moment. */
const minFreeBytes = 200e6
/** With fewer free bytes, the check reports a hint. */
const lowFreeBytes = 1e9
/**
 * The check reports a hint for a larger write-ahead log (bytes). Checkpoints keep the log far
 * smaller, unless a connection reads for very long.
 */
const maxWalBytes = 256e6

export function checkFreeSpace(config: Config, free = freeBytes): CheckResult {
  const rooms = writtenFolders(config)
    .filter((folder) => existsSync(folder))
    .map((folder) => ({ folder, bytes: free(folder) }))
  const least = rooms.sort((one, other) => one.bytes - other.bytes)[0]
  if (!least) return null
  const { folder, bytes } = least
  if (bytes < minFreeBytes)
    return `${megabytes(bytes)} are free for ${folder}. Free some space: writes will be refused, and a backup needs as much again.`
  return bytes < lowFreeBytes ? new Hint(`${megabytes(bytes)} are free for ${folder}. Free some space soon.`) : null
}

export function checkWalSize({ dialect, url }: Store): CheckResult {
  const bytes = dialect.copies.walBytes(url)
  return bytes > maxWalBytes
    ? new Hint(
        `the log beside the database has ${megabytes(bytes)}. Restart the server and every other program that reads the database.`,
      )
    : null
}

/**
 * Checks the permissions of the database file. This process must be able to write it, and no other
 * user may read it. In a folder that other users cannot enter, the mode of the file does not
 * matter.
 */
export function checkDatabasePermissions(config: Config): CheckResult {
  const file = databaseFile(config.databaseUrl)
  const found = file === null ? undefined : statSync(file, { throwIfNoEntry: false })
  if (file === null || !found) return null
  const findings: (string | Hint)[] = []
  for (const path of [file, dirname(file)]) {
    try {
      accessSync(path, constants.R_OK | constants.W_OK)
    } catch (cause) {
      const isMounted = (cause as NodeJS.ErrnoException).code === 'EROFS'
      findings.push(
        `${path} cannot be written. ${isMounted ? 'Its file system is mounted read-only: mount it writable.' : `Run: chown -R "$USER" ${path}`}`,
      )
    }
  }
  if ((found.mode & 0o004) !== 0 && (statSync(dirname(file)).mode & 0o001) !== 0)
    findings.push(`every user of this machine can read ${file}. Run: chmod 600 ${file}`)
  return findings
}

export async function checkEncryption(store: Store, config: Config): Promise<CheckResult> {
  const { values, unreadable } = await checkEncryptedValues(store.db, config, presentSecret(config))
  if (unreadable.length === 0) {
    // The table `installation` stores the check value of the secret. A database with pending
    // migrations may lack the table.
    const problem = (await hasTable(store, 'installation')) ? await secretProblem(config, store) : null
    return problem === null ? null : `ACCORD_SECRET ${problem}`
  }
  const which = unreadable.slice(0, 3).join(', ') + (unreadable.length > 3 ? ' …' : '')
  return `the secret does not decrypt ${unreadable.length} of ${values} (${which}). ${config.secret === null ? `Put the secret they were encrypted with into ${secretFile(config)}` : 'Set ACCORD_SECRET to the secret they were encrypted with'}, or enter the values again.`
}

/**
 * The number of newest files whose size is checked without `deep`. There may be too many files to
 * check all.
 */
const maxRecentFiles = 1000
const maxRecentHashes = 50
/** The number of newest files to check in a bucket, where each file needs a request. */
const maxRecentObjects = 100

export async function checkFileContents({ db }: Store, config: Config, deep: boolean): Promise<CheckResult> {
  const files = openFiles(config)
  const rows = db.selectFrom('files').select(['id', 'sha256', 'size']).orderBy('id', 'desc')
  const recent = rows.limit(config.filesUrl === null ? maxRecentFiles : maxRecentObjects)
  const wrong: string[] = []
  let checked = 0
  for (const { id, sha256, size } of await (deep ? rows : recent).execute()) {
    const found = await files.find(sha256)
    if (!found) wrong.push(`file ${id} is missing`)
    else if (found.isInTrash) wrong.push(`file ${id} is in the trash`)
    else if (found.size !== size) wrong.push(`file ${id} has ${found.size} bytes instead of ${size}`)
    else if ((deep || checked < maxRecentHashes) && (await isChanged(found, sha256)))
      wrong.push(`the contents of file ${id} were changed`)
    checked++
  }
  if (wrong.length === 0) return null
  const more = wrong.length > 3 ? ` and ${wrong.length - 3} more` : ''
  if (wrong.every((each) => each.endsWith('trash')))
    return `${wrong.slice(0, 3).join(', ')}${more}. Run: accord files clean`
  const where = config.filesUrl === null ? '' : `, to ${files.place}`
  return `${wrong.slice(0, 3).join(', ')}${more}. Copy ${wrong.length === 1 ? 'it' : 'them'} from a backup: files/<first two of the hash>/<hash>${where}.`
}

/**
 * Returns whether the contents no longer match the hash. Returns false for a file that was removed
 * meanwhile.
 */
async function isChanged(source: Source, sha256: string): Promise<boolean> {
  const hash = createHash('sha256')
  try {
    for await (const chunk of readAll(source)) hash.update(chunk as Buffer)
  } catch (cause) {
    if (isMissing(cause)) return false
    throw cause
  }
  return hash.digest('hex') !== sha256
}

/**
 * Lists, writes, reads, copies and removes an object, because an access key may have only some of
 * these permissions.
 */
export async function checkBucket(config: Config): Promise<CheckResult> {
  const bucket = openBucket(config)
  if (bucket === null) return null
  const folder = mkdtempSync(join(tmpdir(), 'accord-doctor-'))
  const [path, key] = [join(folder, 'probe'), `probe-${basename(folder)}`]
  const bytes = Buffer.from(key)
  let doing = 'list the objects'
  try {
    writeFileSync(path, bytes)
    await bucket.first('')
    doing = 'write an object'
    await bucket.put(key, path, { size: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') })
    doing = 'read an object'
    for await (const _chunk of bucket.read(key, 0, bytes.length - 1));
    doing = 'copy an object'
    await bucket.copy(key, `${trashOf('')}/${key}`)
    doing = 'delete an object'
    for (const each of [key, `${trashOf('')}/${key}`]) await bucket.remove(each)
    return null
  } catch (cause) {
    if (!(cause instanceof FileStorageError)) throw cause
    return `this server could not ${doing}. ${cause.message}. Check ACCORD_FILES_URL, ACCORD_S3_ENDPOINT and the credentials.`
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The minimum size of the trash, in bytes, for a hint. */
const minTrashBytes = 100e6

/** Returns a hint when the trash is large. A user can free space by deleting its files. */
export async function checkTrash(config: Config): Promise<CheckResult> {
  const files = openFiles(config)
  const found = await files.inTrash()
  const bytes = found.reduce((sum, { size }) => sum + size, 0)
  return bytes < minTrashBytes
    ? null
    : new Hint(
        `${found.length} files with ${megabytes(bytes)} are in ${files.place}/trash; they are deleted after ${trashDays} days there.`,
      )
}

export function checkBackups(config: Config): CheckResult {
  if (isInMemory(config.databaseUrl) || !existsSync(config.dataDir)) return null
  const last = lastBackup(config)
  const isThere = last !== null && existsSync(last.path)
  if (isThere && systemClock.now().getTime() - Date.parse(last.at) < daysMs(7)) return null
  const what = last === null ? 'there is none' : `the last one was made at ${last.at}`
  const where = last === null || isThere ? '' : `, and it is no longer at ${last.path}`
  return new Hint(`${what}${where}. Run accord backup every day; its --help shows how.`)
}

const namesIn = (folder: string): string[] => (existsSync(folder) ? readdirSync(folder) : [])

/**
 * Finds files that interrupted processes left, and data that a restore or a new installation moved
 * aside.
 */
export function checkLeftovers(config: Config): CheckResult {
  if (isInMemory(config.databaseUrl) || !existsSync(config.dataDir)) return null
  const findings: (string | Hint)[] = []
  if (existsSync(restoringMark(config)))
    findings.push(`a restore was interrupted. Run it again: accord restore <backup> --force`)
  const since = systemClock.now().getTime() - daysMs(1)
  // If the database is outside the data folder, its leftovers are beside the database file,
  // possibly among files of other programs.
  const beside = dirname(databaseFile(config.databaseUrl) ?? config.dataDir)
  const isElsewhere = relative(config.dataDir, beside) !== ''
  const foldersOfDrafts: [folder: string, isDraft: RegExp][] = [
    [config.dataDir, /^\..*\.(partial|new)$/],
    [backupsFolder(config), /^\..*\.partial$|\.db\.partial$/],
    [join(filesFolder(config), 'tmp'), /^/],
    ...(isElsewhere
      ? ([
          [beside, /^\.restore-.*\.partial$/],
          [join(beside, 'backups'), /^accord-.*\.db\.partial$/],
        ] as [string, RegExp][])
      : []),
  ]
  const drafts = foldersOfDrafts.flatMap(([folder, isDraft]) =>
    namesIn(folder)
      .filter((name) => isDraft.test(name))
      .map((name) => join(folder, name))
      .filter((path) => (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? since) < since),
  )
  if (drafts.length > 0)
    findings.push(new Hint(`${drafts.length} unfinished files are older than a day (${drafts[0]} …). Delete them.`))
  const isAside = (name: string): boolean => /^before-(restore|new)-/.test(name)
  const aside = [
    ...namesIn(config.dataDir).filter(isAside),
    ...(isElsewhere ? namesIn(beside).filter(isAside) : []).map((name) => join(beside, name)),
  ]
  if (aside.length > 0)
    findings.push(
      new Hint(
        `${aside.join(', ')} holds the data from before ${aside.some((name) => name.includes('before-new-')) ? 'a new installation' : 'a restore'}. Delete it when you no longer need it.`,
      ),
    )
  return findings
}
