// Adds the Reply-To addresses of received e-mails. An answer goes to them.
import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { addColumn, json } from '../schema/columns.ts'

export const up = (db: Kysely<unknown>, dialect: Dialect): Promise<void> =>
  addColumn(db, dialect, 'emails', 'reply_addresses', json('[]'))
