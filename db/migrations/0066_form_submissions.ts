// Adds the submissions of web forms of the last minutes, so that a second click on the button of a
// form makes no second lead.

import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { createTable, text, timestamp } from '../schema/columns.ts'

export const up = (db: Kysely<unknown>, dialect: Dialect): Promise<void> =>
  createTable(
    db,
    dialect,
    'web_form_submissions',
    {
      /** The SHA-256 hash of the form and of the submitted values. */
      digest: text(),
      created_at: timestamp(),
    },
    { primaryKey: ['digest'], indexes: [['created_at']] },
  )
