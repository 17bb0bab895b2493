// Adds the attribute types `number` and `url`.

import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { oneOf, replaceColumn } from '../schema/columns.ts'

export const up = (db: Kysely<unknown>, dialect: Dialect): Promise<void> =>
  replaceColumn(db, dialect, ['attributes', 'type'], oneOf(types, 'text'), [{ columns: ['type', 'id'] }])

const types = [
  'text',
  'textarea',
  'number',
  'price',
  'boolean',
  'select',
  'multiselect',
  'checkbox',
  'email',
  'address',
  'phone',
  'url',
  'lookup',
  'datetime',
  'date',
  'image',
  'file',
  'subheading',
]
