// Compares a backup or an unpacked copy with its manifest, to the last byte and row. A backup is
// examined before it gets its final name, an unpacked copy before it is used. Changes nothing.
import { join } from 'node:path'
import type { Kysely } from 'kysely'
import { pendingMigrations } from '../../../db/migrate.ts'
import { type DatabaseCopy, openCopy } from '../../../db/store.ts'
import { tableChecksums } from '../../../db/table-checksums.ts'
import type { Config } from '../../config/config.ts'
import { createEncryption } from '../../kernel/auth/encryption.ts'
import { placeOf } from '../../kernel/files/file-store.ts'
import { CommandError } from '../command-error.ts'
import { checkEncryptedValues } from '../encrypted-values.ts'
import { hashFile, isMissing } from './bytes.ts'
import { backupEntries, type Contents, type FileChecksum, type Manifest } from './manifest.ts'

/**
 * Returns an HMAC that identifies the secret. With it, the manifest recognizes the secret without
 * containing it.
 */
export const secretCheck = (secret: string, createdAt: string): string =>
  createEncryption(secret).hmac(`accord:backup:${createdAt}`)

/**
 * The folder to compare and its manifest. `called` names the folder in messages. `secret` should
 * decrypt the values in the folder.
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
  await sameBytes(examined, backupEntries.database, manifest.database)
  for (const [name, written] of Object.entries(manifest.contract)) await sameBytes(examined, name, written)
  for (const [sha256, size] of Object.entries(manifest.files))
    await sameBytes({ ...examined, folder: join(folder, backupEntries.files) }, placeOf('', sha256), { sha256, size })
  let copy: DatabaseCopy
  try {
    copy = openCopy(join(folder, backupEntries.database))
  } catch (cause) {
    throw damaged(examined, `${backupEntries.database} cannot be opened.`, cause)
  }
  try {
    const due = await knownMigrations(copy)
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

async function knownMigrations(copy: DatabaseCopy): Promise<string[]> {
  try {
    return await pendingMigrations(copy)
  } catch (cause) {
    throw new CommandError(cause instanceof Error ? cause.message : String(cause), cause)
  }
}

async function sameRows(copy: DatabaseCopy, examined: Examined): Promise<void> {
  const { manifest } = examined
  const [finding] = await copy.dialect.integrityProblems(copy.db as unknown as Kysely<unknown>)
  if (finding !== undefined) throw damaged(examined, `its database is corrupt: ${finding}`)
  const found = await tableChecksums(copy)
  for (const table of new Set([...Object.keys(manifest.tables), ...Object.keys(found)])) {
    const [was, is] = [manifest.tables[table], found[table]]
    if (!was || !is) throw damaged(examined, `the table ${table} is ${was ? 'missing' : 'not in its manifest'}.`)
    if (was.rows !== is.rows)
      throw damaged(examined, `the table ${table} has ${is.rows} rows and should have ${was.rows}.`)
    if (was.sha256 !== is.sha256) throw damaged(examined, `the rows of ${table} were changed after the backup.`)
  }
  const { last_migration, newest_event } = await readDatabaseFacts(copy)
  if (last_migration !== manifest.last_migration || newest_event !== manifest.newest_event)
    throw damaged(examined, 'its last migration or its newest event does not match the manifest.')
  const lost = new Set(manifest.lost_files)
  const without = (await listFileHashes(copy)).find(
    (sha256) => manifest.files[sha256] === undefined && !lost.has(sha256),
  )
  if (without !== undefined) throw damaged(examined, `the contents of file ${without} are missing.`)
}

async function sameSecrets(copy: DatabaseCopy, { called, manifest, config, secret }: Examined): Promise<void> {
  if (secret === null) return
  const { check } = manifest.secret
  if (check !== null && secretCheck(secret, manifest.created_at) !== check) throw wrongSecret(called, manifest, config)
  const { values, unreadable } = await checkEncryptedValues(copy.db, config, secret)
  if (values !== manifest.sealed.values || unreadable.length > manifest.sealed.unreadable)
    throw damaged({ called }, `the secret does not decrypt ${unreadable.join(', ') || 'the encrypted values'}.`)
}

function wrongSecret(called: string, { secret: { kept } }: Manifest, config: Config): CommandError {
  if (config.secret === null) return damaged({ called }, 'its secret was changed after the backup.')
  const instead = kept === 'here' ? 'Set that secret, or none: the backup contains its own.' : 'Set that secret.'
  return new CommandError(`ACCORD_SECRET is not the secret that ${called} was made with. ${instead}`)
}

/** Returns whether the database has the table. A database with pending migrations may lack it. */
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
