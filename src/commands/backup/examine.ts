// Compares a backup or an unpacked copy with its manifest, to the last byte and row. A backup is
// examined before it gets its final name, an unpacked copy before it is used. Changes nothing.
import { join } from 'node:path'
import type { Kysely } from 'kysely'
import { pendingAfter, pendingMigrations } from '../../../db/migrate.ts'
import { type DatabaseCopy, openCopy, readDump } from '../../../db/store.ts'
import { type TableChecksum, tableChecksums } from '../../../db/table-checksums.ts'
import type { Config } from '../../config/config.ts'
import { checkEncryptedValues } from '../../installation/encrypted-values.ts'
import { createEncryption } from '../../kernel/auth/encryption.ts'
import { placeOf } from '../../kernel/files/file-store.ts'
import { CommandError } from '../command-error.ts'
import { hashFile, isMissing } from './bytes.ts'
import { backupEntries, type Contents, databaseEntry, type FileChecksum, type Manifest } from './manifest.ts'

/** Returns an HMAC by which the manifest identifies the secret without containing it. */
export const secretCheck = (secret: string, createdAt: string): string =>
  createEncryption(secret).hmac(`accord:backup:${createdAt}`)

/**
 * The folder to compare and its manifest. `called` names the folder in messages. `secret` is
 * expected to decrypt the values in the folder.
 */
export interface Examined {
  folder: string
  called: string
  manifest: Manifest
  config: Config
  secret: string | null
}

/**
 * Compares the folder with its manifest and returns the names of pending migrations. Throws a
 * CommandError for the first mismatch.
 */
export async function examine(examined: Examined): Promise<{ due: string[] }> {
  const { folder, manifest } = examined
  const database = databaseEntry(manifest.engine)
  await sameBytes(examined, database, manifest.database)
  for (const [name, written] of Object.entries(manifest.contract)) await sameBytes(examined, name, written)
  for (const [sha256, size] of Object.entries(manifest.files))
    await sameBytes({ ...examined, folder: join(folder, backupEntries.files) }, placeOf('', sha256), { sha256, size })
  if (manifest.engine === 'postgres') return examineDump(examined)
  let copy: DatabaseCopy
  try {
    copy = openCopy(join(folder, database))
  } catch (cause) {
    throw damaged(examined, `${database} cannot be opened.`, cause)
  }
  try {
    const due = await ofThisVersion(() => pendingMigrations(copy))
    await sameRows(copy, examined)
    await sameSecrets(copy, examined)
    return { due }
  } finally {
    await copy.close()
  }
}

const damaged = ({ called }: Pick<Examined, 'called'>, what: string, cause?: unknown): CommandError =>
  new CommandError(`${called} is damaged: ${what}`, cause)

async function sameBytes(examined: Examined, name: string, written: FileChecksum): Promise<void> {
  const found = await hashFile(join(examined.folder, name)).catch((cause: unknown) => {
    throw isMissing(cause) ? damaged(examined, `${name} is missing.`, cause) : cause
  })
  if (found.size !== written.size)
    throw damaged(examined, `${name} has ${found.size} bytes and should have ${written.size}.`)
  if (found.sha256 !== written.sha256) throw damaged(examined, `${name} was changed after the backup.`)
}

/**
 * Compares a dump with its manifest without a database server, by the number of rows in each table.
 * `accord restore` compares the contents of the rows after it has loaded them into a database.
 */
async function examineDump(examined: Examined): Promise<{ due: string[] }> {
  const { folder, manifest, secret } = examined
  const { rows, migrations } = await readDump(join(folder, databaseEntry(manifest.engine))).catch((cause: Error) => {
    throw cause.name === 'MissingProgramError'
      ? cause
      : damaged(examined, `its database cannot be read (${cause.message}).`, cause)
  })
  const due = await ofThisVersion(async () => pendingAfter(migrations))
  const counts = Object.fromEntries([...rows].map(([table, count]) => [table, { rows: count, sha256: '' }]))
  sameCounts(examined, counts)
  if (secret !== null) sameSecret(examined, secret)
  return { due }
}

async function ofThisVersion(pending: () => Promise<string[]>): Promise<string[]> {
  try {
    return await pending()
  } catch (cause) {
    throw new CommandError(cause instanceof Error ? cause.message : String(cause), cause)
  }
}

/** Throws for the first difference between the database and the manifest. */
export async function sameRows(copy: DatabaseCopy, examined: Pick<Examined, 'called' | 'manifest'>): Promise<void> {
  const { manifest } = examined
  const [finding] = await copy.dialect.integrityProblems(copy.db as unknown as Kysely<unknown>)
  if (finding !== undefined) throw damaged(examined, `its database is corrupt: ${finding}`)
  const found = await tableChecksums(copy)
  sameCounts(examined, found)
  for (const [table, is] of Object.entries(found))
    if (manifest.tables[table]?.sha256 !== is.sha256)
      throw damaged(examined, `the rows of ${table} were changed after the backup.`)
  const { last_migration, newest_event } = await readDatabaseFacts(copy)
  if (last_migration !== manifest.last_migration || newest_event !== manifest.newest_event)
    throw damaged(examined, 'its last migration or its newest event does not match the manifest.')
  const lost = new Set(manifest.lost_files)
  const without = (await listFileHashes(copy)).find(
    (sha256) => manifest.files[sha256] === undefined && !lost.has(sha256),
  )
  if (without !== undefined) throw damaged(examined, `the contents of file ${without} are missing.`)
}

function sameCounts(
  examined: Pick<Examined, 'called' | 'manifest'>,
  found: Readonly<Record<string, TableChecksum>>,
): void {
  const { tables } = examined.manifest
  for (const table of new Set([...Object.keys(tables), ...Object.keys(found)])) {
    const [was, is] = [tables[table], found[table]]
    if (!was || !is) throw damaged(examined, `the table ${table} is ${was ? 'missing' : 'not in its manifest'}.`)
    if (was.rows !== is.rows)
      throw damaged(examined, `the table ${table} has ${is.rows} rows and should have ${was.rows}.`)
  }
}

/** Throws when the secret is not the secret of the backup. */
function sameSecret({ called, manifest, config }: Examined, secret: string): void {
  const { check } = manifest.secret
  if (check !== null && secretCheck(secret, manifest.created_at) !== check) throw wrongSecret(called, manifest, config)
}

async function sameSecrets(copy: DatabaseCopy, examined: Examined): Promise<void> {
  const { called, manifest, config, secret } = examined
  if (secret === null) return
  sameSecret(examined, secret)
  const { values, unreadable } = await checkEncryptedValues(copy.db, config, secret)
  if (values !== manifest.sealed.values || unreadable.length > manifest.sealed.unreadable)
    throw damaged({ called }, `the secret does not decrypt ${unreadable.join(', ') || 'the encrypted values'}.`)
}

function wrongSecret(called: string, { secret: { kept } }: Manifest, config: Config): CommandError {
  if (config.secret === null) return damaged({ called }, 'its secret was changed after the backup.')
  const instead = kept === 'here' ? 'Set that secret, or none: the backup contains its own.' : 'Set that secret.'
  return new CommandError(`ACCORD_SECRET is not the secret that ${called} was made with. ${instead}`)
}

/**
 * Returns whether the database has the table. A database with pending migrations may lack the
 * table.
 */
export async function hasTable({ db }: Pick<DatabaseCopy, 'db'>, name: string): Promise<boolean> {
  return (await db.introspection.getTables()).some((table) => table.name === name)
}

/** Returns the SHA-256 hashes of all files that rows of the database refer to. */
export async function listFileHashes(copy: DatabaseCopy): Promise<string[]> {
  if (!(await hasTable(copy, 'files'))) return []
  const rows = await copy.db.selectFrom('files').select('sha256').distinct().orderBy('sha256').execute()
  return rows.map(({ sha256 }) => sha256)
}

export async function readDatabaseFacts(
  copy: DatabaseCopy,
): Promise<Pick<Contents, 'last_migration' | 'newest_event'>> {
  const { db } = copy
  const event = (await hasTable(copy, 'events'))
    ? await db.selectFrom('events').select('id').orderBy('id', 'desc').limit(1).executeTakeFirst()
    : undefined
  const migration = (await hasTable(copy, 'migrations'))
    ? await db.selectFrom('migrations').select('name').orderBy('name', 'desc').limit(1).executeTakeFirst()
    : undefined
  return { last_migration: migration?.name ?? null, newest_event: event?.id ?? null }
}
