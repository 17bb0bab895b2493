// `accord install`: prepares a data folder for the server. Each step first checks whether it is
// needed, so that a second run does only the missing steps.

import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { installationOf } from '../../../db/installation.ts'
import { migrate, migrations } from '../../../db/migrate.ts'
import { seed } from '../../../db/seed.ts'
import type { Store } from '../../../db/store.ts'
import { type Config, ConfigError } from '../../config/config.ts'
import { envTemplate } from '../../config/settings-text.ts'
import { writeFileAtomic } from '../../installation/atomic-file.ts'
import { getOrCreateSecret, openData, publishContract } from '../../installation/data-folder.ts'
import { markInstalled } from '../../installation/installation.ts'
import { openFiles } from '../../installation/open-files.ts'
import { ensureSecret } from '../../installation/secret.ts'
import { createEncryption, inboundSecretOf } from '../../kernel/auth/encryption.ts'
import { hashPassword } from '../../kernel/auth/passwords.ts'
import { weaknessOf } from '../../kernel/auth/weak-passwords.ts'
import { stamp, systemClock } from '../../kernel/runtime/clock.ts'
import { rebuildSearch } from '../migrate.ts'
import { counted, type ReportOptions, report } from '../report.ts'
import { moveInstallationAside } from './new-installation.ts'

export interface Installed {
  /** One sentence for each step that was done. */
  done: string[]
  /**
   * The administrator; null when this run did not create one. `password` is null unless it was
   * generated.
   */
  admin: { email: string; password: string | null } | null
}

export async function installCommand(
  config: Config,
  options: { new?: boolean; newSecret?: boolean } & ReportOptions = {},
): Promise<void> {
  const moved = options.new ? await moveInstallationAside(config) : []
  const store = await openData(config)
  try {
    const { done, admin } = await install(config, store, { acceptSecret: options.newSecret === true })
    const inbound = inboundUrl(config)
    report(options, { data_dir: config.dataDir, moved_to: moved, done, administrator: admin, inbound_url: inbound }, [
      ...moved.map((folder) => `Moved the former data to ${folder}.`),
      ...(options.new && config.filesUrl !== null
        ? [
            `Former files stay in ${openFiles(config).place}. Choose another prefix in ACCORD_FILES_URL, or the clean-up reports them.`,
          ]
        : []),
      ...(done.length > 0 ? done : [`Everything is already installed in ${config.dataDir}.`]),
      ...(admin ? [adminText(admin)] : []),
      ...(inbound === null ? [] : [inboundText(inbound)]),
      'To start the server, run: accord serve',
    ])
  } finally {
    await store.close()
  }
}

/**
 * Returns whether the database is not seeded. The seed creates the roles first, so a database
 * without roles is not seeded.
 */
export async function isEmpty(store: Store): Promise<boolean> {
  const tables = await store.db.introspection.getTables()
  return (
    !tables.some(({ name }) => name === 'roles') ||
    (await store.db.selectFrom('roles').select('id').limit(1).execute()).length === 0
  )
}

interface InstallOptions {
  /** The folder in which the file .env is created. */
  folder?: string
  acceptSecret?: boolean
  /** The creation time of the seeded rows. */
  at?: Date
}

/** Runs the missing steps of the installation. */
export async function install(
  config: Config,
  store: Store,
  { folder = process.cwd(), acceptSecret = false, at = systemClock.now() }: InstallOptions = {},
): Promise<Installed> {
  const done: string[] = []
  if (config.adminPassword !== null && (await isEmpty(store))) refuseWeak(config.adminPassword, config.adminEmail)
  if (writeEnvironmentFile(folder)) done.push('Wrote .env with every setting commented out.')
  const migrated = await migrate(store, migrations, { rebuildSearch })
  const { isNew } = await ensureSecret(config, store, { accept: acceptSecret })
  if (isNew) done.push(`Generated the secret in ${config.dataDir}. Back it up: without it encrypted values are lost.`)
  if (migrated.length > 0) done.push(`Applied ${counted(migrated.length, 'migration')}.`)
  const admin = await seedOnce(config, store, at)
  if (admin) done.push('Created the administrator, the default pipeline, sources, types and attributes.')
  if (publishContract(config)) done.push('Published the contract for the documentation.')
  markInstalled(config, await installationOf(store))
  return { done, admin }
}

const adminName = 'Example Admin'

/**
 * Throws ConfigError for a weak password. Called only before the administrator is created, because
 * the setting has no effect later.
 */
function refuseWeak(password: string, email: string): void {
  const weakness = weaknessOf(password, { email, name: adminName })
  if (weakness === undefined) return
  throw new ConfigError('ACCORD_ADMIN_PASSWORD', `${weakness.charAt(0).toLowerCase()}${weakness.slice(1)}`)
}

async function seedOnce(config: Config, store: Store, at: Date): Promise<Installed['admin']> {
  if (!(await isEmpty(store))) return null
  const password = config.adminPassword ?? randomPassword()
  const email = config.adminEmail
  const adminPasswordHash = await hashPassword(config, password)
  await seed(store, { adminName, adminEmail: email, adminPasswordHash, now: stamp(at) })
  return { email, password: config.adminPassword === null ? password : null }
}

/** Returns a password of 144 random bits. Its characters need no escaping in a shell or in JSON. */
export const randomPassword = (): string => randomBytes(18).toString('base64url')

/**
 * Writes the .env template. Returns false when .env exists or when the folder cannot be written,
 * for example in a container or a system service.
 */
function writeEnvironmentFile(folder: string): boolean {
  try {
    return writeFileAtomic(join(folder, '.env'), envTemplate(), { mode: 0o600, isFirst: true })
  } catch (error) {
    if (error instanceof Error && 'code' in error && ['EACCES', 'EROFS', 'EPERM'].includes(String(error.code)))
      return false
    throw error
  }
}

const adminText = (admin: NonNullable<Installed['admin']>): string =>
  `\n  Administrator  ${admin.email}\n  Password       ${passwordText(admin)}\n`

/** Returns the text that shows the password of the administrator. */
export const passwordText = ({ password }: NonNullable<Installed['admin']>): string =>
  password === null ? 'the one in ACCORD_ADMIN_PASSWORD' : `${password}   (shown only now)`

/**
 * Returns the address that a mail service posts inbound e-mails to; null when a mailbox is polled.
 * The address contains a secret, so `accord start` does not print it.
 */
function inboundUrl(config: Config): string | null {
  if (config.mailReceiver !== 'sendgrid') return null
  const base = config.appUrl ?? `http://localhost:${config.port}`
  const secret = inboundSecretOf(config.inboundSecret, createEncryption(getOrCreateSecret(config).secret))
  return `${base}/admin/mail/inbound-parse?secret=${encodeURIComponent(secret)}`
}

const inboundText = (url: string): string =>
  `  Inbound mail   ${url}\n                 Give this address to the mail service, and keep it secret.\n`
