// Creates the tables of products, warehouses, their locations, and the stock of products at them.

import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import {
  createTable,
  id,
  integer,
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
      /**
       * The sums over the inventories of the product. They are stored, so that lists can filter and
       * sort by them.
       */
      in_stock: integer(0),
      allocated: integer(0),
      available: integer(0),
    },
    {
      unique: [['sku_key']],
      indexes: [
        ['name_key', 'id'],
        ['price', 'id'],
        ['quantity', 'id'],
        ...listed,
        ['in_stock', 'id'],
        ['allocated', 'id'],
        ['available', 'id'],
      ],
    },
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
  await createTable(
    db,
    dialect,
    'warehouse_locations',
    {
      id: id(),
      warehouse_id: references('warehouses', 'cascade'),
      name: text(),
      name_key: key(),
      ...timestamps(),
      ...version(),
    },
    { unique: [['warehouse_id', 'name_key']], indexes: [['name_key', 'id'], ...listed] },
  )
  await createTable(
    db,
    dialect,
    'product_inventories',
    {
      id: id(),
      product_id: references('products', 'cascade'),
      warehouse_id: references('warehouses', 'cascade'),
      warehouse_location_id: references('warehouse_locations', 'cascade'),
      in_stock: integer(0),
      allocated: integer(0),
      ...timestamps(),
    },
    {
      unique: [['product_id', 'warehouse_location_id']],
      checks: { allocated_in_stock: '"allocated" between 0 and "in_stock"' },
    },
  )
  await createTable(
    db,
    dialect,
    'warehouse_tags',
    { warehouse_id: references('warehouses', 'cascade'), tag_id: references('tags', 'cascade') },
    { primaryKey: ['warehouse_id', 'tag_id'] },
  )
}
