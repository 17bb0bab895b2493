// Creates the tables of web forms, their fields, and the submissions of the last minutes, so that a
// second click on the button of a form makes no second lead.

import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import {
  createTable,
  flag,
  id,
  integer,
  json,
  key,
  listed,
  nullable,
  oneOf,
  references,
  text,
  timestamp,
  timestamps,
  version,
} from '../schema/columns.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await createTable(
    db,
    dialect,
    'web_forms',
    {
      id: id(),
      form_id: text(),
      title: text(),
      title_key: key(),
      description: nullable(text()),
      submit_button_label: text(),
      submit_success_action: oneOf(['message', 'redirect']),
      submit_success_content: text(),
      create_lead: flag(false),
      background_color: nullable(text()),
      form_background_color: nullable(text()),
      form_title_color: nullable(text()),
      form_submit_button_color: nullable(text()),
      attribute_label_color: nullable(text()),
      is_active: flag(true),
      ...timestamps(),
      ...version(),
    },
    { unique: [['form_id']], indexes: [['title_key', 'id'], ['create_lead', 'id'], ...listed] },
  )
  await createTable(
    db,
    dialect,
    'web_form_attributes',
    {
      id: id(),
      web_form_id: references('web_forms', 'cascade'),
      attribute_id: references('attributes', 'cascade'),
      name: nullable(text()),
      placeholder: nullable(text()),
      is_required: flag(false),
      is_hidden: flag(false),
      default_value: nullable(json()),
      sort_order: integer(),
    },
    { unique: [['web_form_id', 'attribute_id']] },
  )
  await createTable(
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
}
