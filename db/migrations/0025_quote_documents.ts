// Quotes are documents: they get a status, a number from a series for each year, revisions, and the
// contents of their PDF. The quotes of earlier versions become drafts, so that all of their values
// can still be changed. Workflows can start when the status changes.

import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import {
  addColumn,
  createIndex,
  createTable,
  id,
  integer,
  json,
  nullable,
  oneOf,
  references,
  replaceColumn,
  text,
  timestamp,
} from '../schema/columns.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await extendQuotes(db, dialect)
  /** The last number that each year has given. */
  await createTable(db, dialect, 'quote_numbers', { year: integer(), last: integer() }, { primaryKey: ['year'] })
  await createTable(
    db,
    dialect,
    'quote_documents',
    {
      id: id(),
      quote_id: references('quotes', 'cascade'),
      /** The contents of the PDF as JSON. */
      printed: json(),
      logo_file_id: references('files', 'set null'),
      /** The PDF; null until the quote is first printed. */
      file_id: references('files', 'set null'),
    },
    { unique: [['quote_id']] },
  )
  await replaceColumn(db, dialect, ['workflows', 'event'], oneOf(triggers, 'lead.create.after'), [
    { columns: ['event', 'sort_order', 'id'] },
  ])
}

async function extendQuotes(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const columns = {
    number: nullable(text()),
    number_key: nullable(text()),
    status: oneOf(['draft', 'sent', 'accepted', 'declined', 'expired'], 'draft'),
    revision: integer(1),
    revises_id: references('quotes', 'set null'),
    revised_by_id: references('quotes', 'set null'),
    sent_at: nullable(timestamp()),
    customer: nullable(json()),
    taxes: nullable(json()),
  }
  for (const [name, column] of Object.entries(columns)) await addColumn(db, dialect, 'quotes', name, column)
  // A quote has one next revision, even if two users revise it at the same time.
  await db.schema.dropIndex('quotes_revises_id_index').execute()
  await createIndex(db, dialect, 'quotes', { columns: ['revises_id'], isUnique: true })
  await createIndex(db, dialect, 'quotes', { columns: ['number_key'], isUnique: true })
  for (const column of ['status', 'sent_at']) await createIndex(db, dialect, 'quotes', { columns: [column, 'id'] })
}

const triggers = [
  'lead.won',
  'lead.lost',
  'lead.reopened',
  'quote.sent',
  'quote.accepted',
  'quote.declined',
  'quote.expired',
  ...['lead', 'activity', 'contacts.person', 'quote'].flatMap((noun) => [
    `${noun}.create.after`,
    `${noun}.update.after`,
    `${noun}.delete.before`,
  ]),
]
