// Checks that the secret is the one that the database was installed with. A different secret cannot
// decrypt the stored values, so a missing secret must not be replaced silently.
import type { Store } from '../../db/store.ts'
import { type Config, ConfigError } from '../config/config.ts'
import { createEncryption } from '../kernel/auth/encryption.ts'
import { stamp, systemClock } from '../kernel/runtime/clock.ts'
import { bestEffort } from '../kernel/runtime/unavailable.ts'
import { getOrCreateSecret, presentSecret, secretFile } from './data-folder.ts'
import { checkEncryptedValues } from './encrypted-values.ts'

const checkOf = (secret: string): string => createEncryption(secret).hmac('accord:installation')

const recorded = async ({ db }: Pick<Store, 'db'>): Promise<string | undefined> =>
  (await db.selectFrom('installation').select('secret_check').executeTakeFirst())?.secret_check

/**
 * Returns the secret. Creates a secret for a database that never had one. Throws ConfigError when
 * the secret is missing or wrong. With `accept`, skips this check. Values that were encrypted with
 * another secret are then lost.
 */
export async function ensureSecret(
  config: Config,
  store: Store,
  { accept = false } = {},
): Promise<{ secret: string; isNew: boolean }> {
  const known = await recorded(store)
  const present = presentSecret(config)
  const problem = accept ? null : await problemOf(config, store, { known, present })
  if (problem !== null) throw new ConfigError('ACCORD_SECRET', problem)
  const made = getOrCreateSecret(config)
  await record(store, known, checkOf(made.secret))
  return made
}

/**
 * Returns the problem of a wrong or missing secret for `accord doctor`, or null. The database must
 * have all migrations.
 */
export const secretProblem = async (config: Config, store: Store): Promise<string | null> =>
  problemOf(config, store, { known: await recorded(store), present: presentSecret(config) })

const newOne =
  'To use a new one and lose the encrypted values (secrets of webhooks, the mailbox password): accord install --new-secret'

async function problemOf(
  config: Config,
  { db }: Store,
  { known, present }: { known: string | undefined; present: string | null },
): Promise<string | null> {
  if (present !== null && known !== undefined) {
    if (checkOf(present) === known) return null
    return `${config.secret === null ? `is not set, and ${secretFile(config)} does not contain` : 'is not'} the secret that this database was installed with. Restore that secret. ${newOne}`
  }
  const { values, unreadable } =
    known === undefined ? await checkEncryptedValues(db, config, present) : { values: 1, unreadable: ['all'] }
  // Databases of older versions have no `secret_check`. Their secret is right if it decrypts any
  // value.
  if (present !== null) {
    if (values === 0 || unreadable.length < values) return null
    return `decrypts none of the ${values} encrypted values of this database. Restore the secret they were encrypted with. ${newOne}`
  }
  if (values === 0) return null
  return `is not set and ${secretFile(config)} does not contain one, but this database was installed with a secret. Restore it: a backup contains it unless made with --without-secret. ${newOne}`
}

async function record({ db }: Store, known: string | undefined, secret_check: string): Promise<void> {
  if (known === secret_check) return
  const now = stamp(systemClock.now())
  // On a full or read-only disk, the next start writes the record.
  await bestEffort(async () => {
    if (known === undefined)
      await db
        .insertInto('installation')
        .values({ id: 1, secret_check, created_at: now, updated_at: now })
        .onConflict((conflict) => conflict.doNothing())
        .execute()
    else await db.updateTable('installation').set({ secret_check, updated_at: now }).execute()
  })
}
