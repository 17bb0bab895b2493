// The secret that a database was installed with. Another one would encrypt new values beside those it cannot open, and a missing one
// must not be replaced by a new one in silence.
import type { Store } from '../../db/store.ts'
import { checkEncryptedValues } from '../commands/encrypted-values.ts'
import { type Config, ConfigError } from '../config/config.ts'
import { createEncryption } from '../kernel/auth/encryption.ts'
import { stamp, systemClock } from '../kernel/runtime/clock.ts'
import { bestEffort } from '../kernel/runtime/unavailable.ts'
import { getOrCreateSecret, presentSecret, secretFile } from './data-folder.ts'

const checkOf = (secret: string): string => createEncryption(secret).hmac('accord:installation')

const recorded = async ({ db }: Pick<Store, 'db'>): Promise<string | undefined> =>
  (await db.selectFrom('installation').select('secret_check').executeTakeFirst())?.secret_check

/**
 * The secret in force; makes one for a database that never had one. Throws ConfigError when it is missing, or another one than the
 * database was installed with. `accept` takes it all the same: what the former one encrypted cannot be read any more.
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

/** The problem of the secret of a database with all migrations, in a sentence, or null; for the doctor. */
export const secretProblem = async (config: Config, store: Store): Promise<string | null> =>
  problemOf(config, store, { known: await recorded(store), present: presentSecret(config) })

const newOne =
  'To go on with a new one and lose what the former one encrypted (secrets of webhooks, the password of the mailbox): accord install --new-secret'

async function problemOf(
  config: Config,
  { db }: Store,
  { known, present }: { known: string | undefined; present: string | null },
): Promise<string | null> {
  if (present !== null && known !== undefined) {
    if (checkOf(present) === known) return null
    return `${config.secret === null ? `is not set, and ${secretFile(config)} does not hold` : 'is not'} the secret that this database was installed with. Put that one back. ${newOne}`
  }
  const { values, unreadable } =
    known === undefined ? await checkEncryptedValues(db, config, present) : { values: 1, unreadable: ['all'] }
  // A database older than the record of its secret is judged by its encrypted values.
  if (present !== null) {
    if (values === 0 || unreadable.length < values) return null
    return `opens none of the ${values} encrypted values of this database. Put the secret back that they were stored with. ${newOne}`
  }
  if (values === 0) return null
  return `is not set and ${secretFile(config)} holds none, but this database was installed with a secret. Put it back: a backup has it, unless it was made without. ${newOne}`
}

async function record({ db }: Store, known: string | undefined, secret_check: string): Promise<void> {
  if (known === secret_check) return
  const now = stamp(systemClock.now())
  // On a full or read-only disk the next start does it.
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
