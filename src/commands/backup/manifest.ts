// Writes and reads manifest.json, which describes a backup so completely that any damage is
// detected. The manifest is written last and includes a checksum of itself.
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { syncPath } from '../../../db/disk.ts'
import type { TableChecksum } from '../../../db/table-checksums.ts'
import { version } from '../../installation/package-info.ts'
import { CommandError } from '../command-error.ts'

const product = 'accord-crm'
/**
 * The version of the backup format. It is raised when older programs cannot restore a new backup.
 */
const format = 1

export const backupEntries = {
  manifest: 'manifest.json',
  files: 'files',
  secret: 'secret',
} as const
/** Returns the file name of the database copy: a SQLite database, or a dump for pg_restore. */
export const databaseEntry = (engine: string): string => (engine === 'postgres' ? 'accord.dump' : 'accord.db')
/**
 * The file names of the published contract. Only backups of older versions contain the YAML file.
 */
export const contractNames = ['openapi.json', 'openapi.yaml'] as const

export interface FileChecksum {
  size: number
  sha256: string
}

export interface Contents {
  created_at: string
  /** The id of the installation; null when the database has no migration yet. */
  installation: string | null
  engine: string
  last_migration: string | null
  newest_event: number | null
  database: FileChecksum
  tables: Record<string, TableChecksum>
  /** The sizes of the files in bytes, by SHA-256 hash. The hash is also the file name. */
  files: Record<string, number>
  /** The hashes of the files whose contents the installation had already lost before the backup. */
  lost_files: string[]
  contract: Record<string, FileChecksum>
  /**
   * Where the secret is stored. `check` is an HMAC that identifies the secret without revealing it.
   */
  secret: { kept: 'here' | 'in ACCORD_SECRET' | 'elsewhere' | 'nowhere'; check: string | null }
  /**
   * The number of encrypted values at the time of the backup. `unreadable` is the number of values
   * that the secret did not decrypt.
   */
  sealed: { values: number; unreadable: number }
}

export interface Manifest extends Contents {
  format: number
  product: string
  version: string
  checksum: string
}

/** Returns the folder name of a backup that was made at `createdAt`. */
export const backupName = (createdAt: string): string => createdAt.replaceAll(/[:.]/g, '-')
export const isBackupName = (name: string): boolean => /^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z$/.test(name)

const checksumOf = (manifest: Omit<Manifest, 'checksum'>): string =>
  createHash('sha256').update(JSON.stringify(manifest)).digest('hex')

export function writeManifest(folder: string, contents: Contents): Manifest {
  const { tables, files, ...rest } = contents
  const body = { format, product, version, ...rest, tables, files }
  const manifest = { ...body, checksum: checksumOf(body) }
  const path = join(folder, backupEntries.manifest)
  writeFileSync(path, `${JSON.stringify(manifest, null, 1)}\n`, { mode: 0o600, flag: 'wx' })
  syncPath(path)
  return manifest
}

/**
 * Returns the manifest of a folder. Throws a CommandError unless the manifest is valid and has the
 * format that this program reads.
 */
export function readManifest(folder: string): Manifest {
  const manifest = parseManifest(folder)
  if (manifest.product !== product)
    throw new CommandError(`${folder} is not a backup of Accord CRM: ${backupEntries.manifest} names another product.`)
  if (manifest.format !== format)
    throw new CommandError(
      `${folder} has the backup format ${manifest.format}, and this program (${version}) reads format ${format}. Restore it with Accord CRM ${manifest.version}.`,
    )
  const { checksum, ...body } = manifest
  if (checksum !== checksumOf(body as Omit<Manifest, 'checksum'>))
    throw new CommandError(`${folder} is damaged: ${backupEntries.manifest} was changed after the backup was made.`)
  assertSafeNames(folder, manifest as Manifest)
  return manifest as Manifest
}

/**
 * Throws for a name that does not belong to a backup. Names become paths, so a manipulated name
 * could lead outside the backup.
 */
function assertSafeNames(folder: string, { files, contract }: Manifest): void {
  const strange =
    Object.keys(files).find((name) => !/^[0-9a-f]{64}$/.test(name)) ??
    Object.keys(contract).find((name) => !contractNames.some((known) => known === name))
  if (strange !== undefined)
    throw new CommandError(
      `${folder} is damaged: ${backupEntries.manifest} names the file ${strange}, which does not belong to a backup.`,
    )
}

function parseManifest(folder: string): Partial<Manifest> {
  let text: string
  try {
    text = readFileSync(join(folder, backupEntries.manifest), 'utf8')
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code
    if (code === 'EACCES' || code === 'EPERM') throw new CommandError(`This user cannot read ${folder}.`, cause)
    throw new CommandError(
      `${folder} is not a backup: it has no ${backupEntries.manifest}. A backup is a folder made by accord backup.`,
      cause,
    )
  }
  try {
    const found: unknown = JSON.parse(text)
    if (typeof found === 'object' && found !== null) return found as Partial<Manifest>
  } catch {
    // The error below covers invalid JSON.
  }
  throw new CommandError(`${folder} is damaged: ${backupEntries.manifest} is not valid JSON.`)
}
