// Adds the time at which a queued e-mail is sent.
import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { addColumn, nullable, timestamp } from '../schema/columns.ts'

export const up = (db: Kysely<unknown>, dialect: Dialect): Promise<void> =>
  addColumn(db, dialect, 'emails', 'send_at', nullable(timestamp()))
