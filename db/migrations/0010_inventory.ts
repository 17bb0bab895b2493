// Creates the tables of warehouse locations and of the stock of products at them.

import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import {
  addColumn,
  createIndex,
  createTable,
  id,
  integer,
  key,
  listed,
  references,
  text,
  timestamps,
  version,
} from '../schema/columns.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  // The sums over the inventories of a product. They are stored in `products`, so that lists can
  // filter and sort by them.
  for (const name of ['in_stock', 'allocated', 'available']) {
    await addColumn(db, dialect, 'products', name, integer(0))
    await createIndex(db, dialect, 'products', { columns: [name, 'id'] })
  }
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
  await createTable(
    db,
    dialect,
    'warehouse_activities',
    { warehouse_id: references('warehouses', 'cascade'), activity_id: references('activities', 'cascade') },
    { primaryKey: ['warehouse_id', 'activity_id'] },
  )
}
