// What a backup says of itself in manifest.json: enough to tell a whole one from a damaged one, and whether what is read back is what
// was there. Written last, and with a checksum, so that a manifest somebody changed is known as such.
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { syncPath } from '../../../db/disk.ts'
import type { TableChecksum } from '../../../db/table-checksums.ts'
import { version } from '../../installation/package-info.ts'
import { CommandError } from '../command-error.ts'

const product = 'accord-crm'
/** Raised when a program that knows only the number before could not restore what is written now. */
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
  /** Whose backup it is, where several share a folder; null of a database without a migration. */
  installation: string | null
  engine: string
  last_migration: string | null
  newest_event: number | null
  database: FileChecksum
  tables: Record<string, TableChecksum>
  /** Size by hash, which is the name as well. */
  files: Record<string, number>
  /** Hashes of files whose bytes the installation itself had lost. */
  lost_files: string[]
  contract: Record<string, FileChecksum>
  /** Its own bytes are not hashed here: `check` tells whether a secret is the one, to nobody who does not have it. */
  secret: { kept: 'here' | 'in ACCORD_SECRET' | 'elsewhere' | 'nowhere'; check: string | null }
  /** Values that only the secret opens, and how many of them it did not open when they were backed up. */
  sealed: { values: number; unreadable: number }
}

export interface Manifest extends Contents {
  format: number
  product: string
  version: string
  checksum: string
}

/** Where a backup of that moment lies. */
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

/** Throws a sentence for what is no whole backup of this product that this program can read. */
export function readManifest(folder: string): Manifest {
  const manifest = parseManifest(folder)
  if (manifest.product !== product)
    throw new CommandError(`${folder} is no backup of Accord CRM: ${backupEntries.manifest} names another product.`)
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

/** Names become paths: one that leads out of the backup, or over something else in it, is not one of ours. */
function assertSafeNames(folder: string, { files, contract }: Manifest): void {
  const strange =
    Object.keys(files).find((name) => !/^[0-9a-f]{64}$/.test(name)) ??
    Object.keys(contract).find((name) => !contractNames.some((known) => known === name))
  if (strange !== undefined)
    throw new CommandError(
      `${folder} is damaged: ${backupEntries.manifest} names the file ${strange}, which is none of a backup.`,
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
      `${folder} is no backup: it has no ${backupEntries.manifest}. A backup is a folder that accord backup has made.`,
      cause,
    )
  }
  try {
    const found: unknown = JSON.parse(text)
    if (typeof found === 'object' && found !== null) return found as Partial<Manifest>
  } catch {
    // Said below.
  }
  throw new CommandError(`${folder} is damaged: ${backupEntries.manifest} is not the JSON that was written.`)
}
