// Storage locations within warehouses.
import type { Schema } from '../../contract/types.ts'
import { textField, valueField } from '../../kernel/query/filter.ts'
import { defineResource, type Writing } from '../../kernel/resource/define-resource.ts'
import { checkReference, expandReferences } from '../../kernel/resource/references.ts'
import { textKey } from '../../kernel/values/names.ts'
import { clearInventories, refuseIfStocked } from '../products/inventories.ts'
import { warehouses } from '../warehouses/resource.ts'

type Row = { id: number; name: string; name_key: string; warehouse_id: number }

export const locations = defineResource({
  noun: 'location',
  table: 'warehouse_locations',
  externalIds: { table: 'location_external_ids', column: 'location_id' },
  operations: {
    list: 'listLocations',
    get: 'getLocation',
    create: 'createLocation',
    update: 'updateLocation',
    delete: 'deleteLocation',
  },
  rows: (_ctx, db) =>
    db
      .selectFrom('warehouse_locations')
      .innerJoin('warehouses', 'warehouses.id', 'warehouse_locations.warehouse_id')
      .selectAll('warehouse_locations')
      .select('warehouses.name as warehouse_name'),
  sort: {
    id: 'warehouse_locations.id',
    name: 'warehouse_locations.name_key',
    created_at: 'warehouse_locations.created_at',
  },
  filter: {
    name: textField('warehouse_locations.name_key'),
    warehouse_id: valueField('warehouse_locations.warehouse_id'),
  },
  search: [{ key: 'warehouse_locations.name_key' }],
  withoutColumn: {},
  toRow: async ({ name, warehouse_id }, writing) => {
    const { current, errors } = writing
    if (current && warehouse_id !== undefined && warehouse_id !== current.warehouse_id)
      errors.invalid('warehouse_id', 'A location cannot move to another warehouse.')
    if (!current) await checkReference(writing, 'warehouse_id', warehouse_id, warehouses)
    const key = name === undefined ? undefined : textKey(name)
    await checkName(writing, key, current?.warehouse_id ?? warehouse_id)
    return { columns: { name, name_key: key, ...(!current && { warehouse_id }) } }
  },
  toReply: (row): Schema<'StorageLocation'> => ({
    id: row.id,
    name: row.name,
    warehouse_id: row.warehouse_id,
    warehouse: { id: row.warehouse_id, name: row.warehouse_name },
    external_ids: {},
    created_at: row.created_at,
    updated_at: row.updated_at,
    version: row.version,
  }),
  loadRelated: (ctx, replies, include) => expandReferences(ctx, replies, include, { warehouse: () => warehouses }),
  beforeDelete: async (ctx, row) => {
    await refuseIfStocked(ctx, 'warehouse_location_id', row)
    await clearInventories(ctx, { locationId: row.id })
  },
})

/**
 * Adds an error when another location of the same warehouse has this name. `key` is the folded
 * name.
 */
async function checkName(
  { ctx, current, errors }: Writing<Row>,
  key: string | undefined,
  warehouseId: number | undefined,
): Promise<void> {
  if (key === undefined || warehouseId === undefined) return
  const other = await ctx.db
    .selectFrom('warehouse_locations')
    .select('id')
    .where('warehouse_id', '=', warehouseId)
    .where('name_key', '=', key)
    .executeTakeFirst()
  if (other && other.id !== current?.id)
    errors.taken('name', 'locations', other.id, 'Another location of the warehouse has this name.')
}
