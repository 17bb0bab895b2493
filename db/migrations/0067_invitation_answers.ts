// Adds the answers of participants to invitations, with the times that they answered.
import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { addColumn, nullable, oneOf, timestamp } from '../schema/columns.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const table = 'activity_participants'
  await addColumn(db, dialect, table, 'response', nullable(oneOf(['accepted', 'tentative', 'declined'])))
  /** The time of the answer, by which a later answer replaces an earlier one. */
  await addColumn(db, dialect, table, 'responded_at', nullable(timestamp()))
  /** The times of the activity when the answer arrived. The answer does not count for others. */
  await addColumn(db, dialect, table, 'answered_from', nullable(timestamp()))
  await addColumn(db, dialect, table, 'answered_to', nullable(timestamp()))
}
