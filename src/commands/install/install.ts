// `accord install`: prepares a data folder for the server. Each step checks first, so that a second
// run does only what is missing (DOMAIN 24.2).
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { installationOf } from '../../../db/installation.ts'
import { seed } from '../../../db/seed.ts'
import type { Store } from '../../../db/store.ts'
import { type Config, ConfigError } from '../../config/config.ts'
import { envTemplate } from '../../config/settings-text.ts'
import { writeFileAtomic } from '../../installation/atomic-file.ts'
import { getOrCreateSecret, migrateData, openData, publishContract } from '../../installation/data-folder.ts'
import { markInstalled } from '../../installation/installation.ts'
import { ensureSecret } from '../../installation/secret.ts'
import { createEncryption, inboundSecretOf } from '../../kernel/auth/encryption.ts'
import { hashPassword } from '../../kernel/auth/passwords.ts'
import { weaknessOf } from '../../kernel/auth/weak-passwords.ts'
import { stamp, systemClock } from '../../kernel/runtime/clock.ts'
import { rebuildSearch } from '../rebuild-search.ts'
import { moveInstallationAside } from './new-installation.ts'

export interface Installed {
  /** One sentence for each step done. */
  done: string[]
  /** The administrator, if created by this run; the password only if it was generated. */
  admin: { email: string; password: string | null } | null
}

export async function installCommand(
  config: Config,
  options: { new?: boolean; newSecret?: boolean } = {},
): Promise<void> {
  if (options.new)
    for (const folder of moveInstallationAside(config)) console.log(`Moved the former data to ${folder}.`)
  const store = openData(config)
  try {
    const { done, admin } = await install(config, store, { acceptSecret: options.newSecret === true })
    for (const sentence of done) console.log(sentence)
    if (done.length === 0) console.log(`Everything is already installed in ${config.dataDir}.`)
    if (admin) printAdmin(admin)
    printInboundUrl(config)
    console.log('To start the server, run: accord serve')
  } finally {
    await store.close()
  }
}

/** Whether the database has no roles, which the installation creates first. */
export async function isEmpty(store: Store): Promise<boolean> {
  const tables = await store.db.introspection.getTables()
  return (
    !tables.some(({ name }) => name === 'roles') ||
    (await store.db.selectFrom('roles').select('id').limit(1).execute()).length === 0
  )
}

/** Writes .env into `folder`. */
export async function install(
  config: Config,
  store: Store,
  { folder = process.cwd(), acceptSecret = false }: { folder?: string; acceptSecret?: boolean } = {},
): Promise<Installed> {
  const done: string[] = []
  if (config.adminPassword !== null && (await isEmpty(store))) refuseWeak(config.adminPassword, config.adminEmail)
  if (writeEnvironmentFile(folder)) done.push('Wrote .env with every setting commented out.')
  const migrated = await migrateData(config, store, rebuildSearch)
  const { isNew } = await ensureSecret(config, store, { accept: acceptSecret })
  if (isNew) done.push(`Generated the secret in ${config.dataDir}. Back it up: without it encrypted values are lost.`)
  if (migrated.length > 0)
    done.push(`Applied ${migrated.length} ${migrated.length === 1 ? 'migration' : 'migrations'}.`)
  const admin = await seedOnce(config, store)
  if (admin) done.push('Created the administrator, the default pipeline, sources, types and attributes.')
  if (publishContract(config)) done.push('Published the contract for the documentation.')
  markInstalled(config, await installationOf(store))
  return { done, admin }
}

const adminName = 'Example Admin'

/**
 * Throws ConfigError. Checked only before the account is created; later the setting is not used.
 */
function refuseWeak(password: string, email: string): void {
  const weakness = weaknessOf(password, { email, name: adminName })
  if (weakness === undefined) return
  throw new ConfigError('ACCORD_ADMIN_PASSWORD', `${weakness.charAt(0).toLowerCase()}${weakness.slice(1)}`)
}

async function seedOnce(config: Config, store: Store): Promise<Installed['admin']> {
  if (!(await isEmpty(store))) return null
  const password = config.adminPassword ?? randomPassword()
  const email = config.adminEmail
  const adminPasswordHash = await hashPassword(config, password)
  await seed(store, { adminName, adminEmail: email, adminPasswordHash, now: stamp(systemClock.now()) })
  return { email, password: config.adminPassword === null ? password : null }
}

/** 144 bits, in characters that need no escaping in a shell or in JSON. */
export const randomPassword = (): string => randomBytes(18).toString('base64url')

/**
 * False when the file exists, or when the folder is read-only, as in a container or a system
 * service.
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

/** Called before anything else can fail, because the password is shown only this once. */
export function printAdmin({ email, password }: { email: string; password: string | null }): void {
  console.log(`\n  Administrator  ${email}`)
  console.log(
    `  Password       ${password === null ? 'the one in ACCORD_ADMIN_PASSWORD' : `${password}   (shown only now)`}\n`,
  )
}

/**
 * The address for the mail service. It contains the secret, so `accord start` prints it only once.
 */
export function printInboundUrl(config: Config): void {
  if (config.mailReceiver !== 'sendgrid') return
  const base = config.appUrl ?? `http://localhost:${config.port}`
  const secret = inboundSecretOf(config.inboundSecret, createEncryption(getOrCreateSecret(config).secret))
  console.log(`  Inbound mail   ${base}/admin/mail/inbound-parse?secret=${encodeURIComponent(secret)}`)
  console.log('                 Give this address to the mail service, and keep it secret.\n')
}
