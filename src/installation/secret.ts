// Checks that the secret is the secret that the database was installed with. Another secret could
// not decrypt the stored values. A missing secret must not be replaced silently.
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
 * the secret is missing or is not the secret of the database. With `accept`, no check is made, and
 * values that were encrypted with the former secret are lost.
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
 * Returns a sentence about a wrong or missing secret for `accord doctor`; null when the secret is
 * right. The database must have all migrations.
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
  // Older databases have no recorded `secret_check`. For them, the secret is right if it decrypts
  // an encrypted value.
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
