// Creates the tables of products with their tags, and of warehouses.

import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import {
  createTable,
  id,
  json,
  key,
  listed,
  money,
  nullable,
  references,
  text,
  timestamps,
  version,
} from '../schema/columns.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await createTable(
    db,
    dialect,
    'products',
    {
      id: id(),
      sku: text(),
      sku_key: key(),
      name: text(),
      name_key: key(),
      description: nullable(text()),
      quantity: money(0),
      price: money(),
      custom_attributes: json('{}'),
      ...timestamps(),
      ...version(),
    },
    { unique: [['sku_key']], indexes: [['name_key', 'id'], ['price', 'id'], ['quantity', 'id'], ...listed] },
  )
  await createTable(
    db,
    dialect,
    'product_tags',
    { product_id: references('products', 'cascade'), tag_id: references('tags', 'cascade') },
    { primaryKey: ['product_id', 'tag_id'] },
  )
  await createTable(
    db,
    dialect,
    'warehouses',
    {
      id: id(),
      name: text(),
      name_key: key(),
      description: nullable(text()),
      contact_name: text(),
      contact_name_key: key(),
      contact_emails: json(),
      contact_numbers: json('[]'),
      contact_address: json(),
      custom_attributes: json('{}'),
      ...timestamps(),
      ...version(),
    },
    { unique: [['name_key']], indexes: [['contact_name_key', 'id'], ...listed] },
  )
}
