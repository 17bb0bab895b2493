// manifest.json describes a backup well enough to detect any damage. It is written last, with a
// checksum of itself.
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { syncPath } from '../../../db/disk.ts'
import type { TableChecksum } from '../../../db/table-checksums.ts'
import { version } from '../../installation/package-info.ts'
import { CommandError } from '../command-error.ts'

const product = 'accord-crm'
/** Raised when older programs could not restore a new backup. */
const format = 1

export const backupEntries = {
  manifest: 'manifest.json',
  database: 'accord.db',
  files: 'files',
  secret: 'secret',
} as const
export const contractNames = ['openapi.json', 'openapi.yaml'] as const

export interface FileChecksum {
  size: number
  sha256: string
}

export interface Contents {
  created_at: string
  /** Id of the installation; null when the database has no migration yet. */
  installation: string | null
  engine: string
  last_migration: string | null
  newest_event: number | null
  database: FileChecksum
  tables: Record<string, TableChecksum>
  /** Size in bytes by SHA-256, which is also the file name. */
  files: Record<string, number>
  /** Hashes of files whose contents the installation had already lost. */
  lost_files: string[]
  contract: Record<string, FileChecksum>
  /** `check` is an HMAC by the secret: it recognizes the secret and reveals nothing about it. */
  secret: { kept: 'here' | 'in ACCORD_SECRET' | 'elsewhere' | 'nowhere'; check: string | null }
  /**
   * Number of encrypted values, and how many of them the secret did not decrypt at the time of the
   * backup.
   */
  sealed: { values: number; unreadable: number }
}

export interface Manifest extends Contents {
  format: number
  product: string
  version: string
  checksum: string
}

/** The folder name of a backup made at that time. */
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

/** Throws a CommandError unless the folder has a valid manifest of a format this program reads. */
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

/** Names become paths, so a manipulated name could lead outside the backup. */
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
    // The error below covers this case.
  }
  throw new CommandError(`${folder} is damaged: ${backupEntries.manifest} is not valid JSON.`)
}
