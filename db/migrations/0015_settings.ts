// Creates the tables of the configuration, and of the check value of the installation's secret.

import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { createTable, id, json, text, timestamps } from '../schema/columns.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await createTable(
    db,
    dialect,
    'core_config',
    /** The table has only values that differ from their defaults. Secrets are encrypted. */
    { id: id(), code: text(), value: json(), ...timestamps() },
    { unique: [['code']] },
  )
  await createTable(db, dialect, 'installation', {
    id: id(),
    /** An HMAC made with the secret. It identifies the secret without revealing it. */
    secret_check: text(),
    ...timestamps(),
  })
}
