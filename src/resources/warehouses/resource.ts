// Warehouses. The reply of a warehouse includes its locations.
import { sql } from 'kysely'
import type { Schema } from '../../contract/types.ts'
import { refuseNamed } from '../../kernel/history/stored-references.ts'
import { linkedField, textField } from '../../kernel/query/filter.ts'
import { defineResource, type Writing } from '../../kernel/resource/define-resource.ts'
import { nameKey } from '../../kernel/resource/named-references.ts'
import { uniqueName } from '../../kernel/resource/references.ts'
import { mergeAddress, readAddress, requireAddress } from '../../kernel/values/address.ts'
import { textKey } from '../../kernel/values/names.ts'
import { withAttributes } from '../attributes/with-attributes.ts'
import { checkUniquePoints, cleanContactPoints, saveUniquePoints } from '../persons/contacts.ts'
import { clearInventories, refuseIfStocked } from '../products/inventories.ts'
import { checkTagIds, readTags, setTags, tagsIn } from '../tags/tag-links.ts'
import { loadActivities, loadLocations } from './related-records.ts'

type Row = { id: number; contact_address: string }
type Body = Schema<'WarehouseUpdate'>
const fields = ['contact_emails', 'contact_numbers'] as const

async function columnsOf(body: Body, writing: Writing<Row>) {
  const { ctx, current, errors } = writing
  const emails = cleanContactPoints('contact_emails', body.contact_emails, errors)
  const numbers = cleanContactPoints('contact_numbers', body.contact_numbers, errors)
  for (const field of fields) {
    await checkUniquePoints(ctx, 'warehouses', field, body[field], current?.id ?? null, errors)
  }
  await checkTagIds(ctx, errors, body.tag_ids)
  const address = mergeAddress(current?.contact_address ?? null, body.contact_address)
  if (body.contact_address !== undefined) requireAddress('contact_address', address ?? null, errors)
  return {
    ...(await uniqueName(writing, { table: 'warehouses', entity: 'warehouses', noun: 'warehouse' }, body.name)),
    description: body.description,
    contact_name: body.contact_name,
    contact_name_key: body.contact_name === undefined ? undefined : textKey(body.contact_name),
    contact_emails: emails && JSON.stringify(emails),
    contact_numbers: current ? numbers && JSON.stringify(numbers) : JSON.stringify(numbers ?? []),
    contact_address: address ?? undefined,
  }
}

export const warehouses = defineResource(
  withAttributes('warehouses', {
    noun: 'warehouse',
    table: 'warehouses',
    externalIds: { table: 'warehouse_external_ids', column: 'warehouse_id' },
    namedBy: { keys: { name: nameKey } },
    operations: {
      list: 'listWarehouses',
      get: 'getWarehouse',
      create: 'createWarehouse',
      update: 'updateWarehouse',
      delete: 'deleteWarehouse',
    },
    rows: (ctx, db) =>
      db
        .selectFrom('warehouses')
        .selectAll('warehouses')
        .select(tagsIn(ctx, db, 'warehouses'))
        .select(
          sql<number>`(select count(distinct row.product_id) from product_inventories as row where row.warehouse_id = warehouses.id)`.as(
            'products_count',
          ),
        ),
    sort: {
      id: 'warehouses.id',
      name: 'warehouses.name_key',
      contact_name: 'warehouses.contact_name_key',
      created_at: 'warehouses.created_at',
    },
    filter: {
      name: textField('warehouses.name_key'),
      contact_name: textField('warehouses.contact_name_key'),
      tag_id: linkedField('warehouse_tags', 'warehouses.id', 'warehouse_id', 'tag_id'),
    },
    search: [
      { key: 'warehouses.name_key' },
      { key: 'warehouses.contact_name_key' },
      { where: (word, dialect) => dialect.jsonPointMatches('warehouses.contact_emails', 'contains', word) },
    ],
    withoutColumn: { tag_ids: 'links' },
    toRow: async (body, writing) => ({
      columns: await columnsOf(body, writing),
      save: async (ctx, id) => {
        for (const field of fields) await saveUniquePoints(ctx, 'warehouses', id, field, body[field])
      },
    }),
    toReply: (row): Schema<'Warehouse'> => ({
      id: row.id,
      name: row.name,
      description: row.description,
      contact_name: row.contact_name,
      contact_emails: JSON.parse(row.contact_emails) as Schema<'ContactPoint'>[],
      contact_numbers: JSON.parse(row.contact_numbers) as Schema<'ContactPoint'>[],
      contact_address: readAddress(row.contact_address) as Schema<'Address'>,
      locations: [],
      products_count: Number(row.products_count),
      tags: readTags(row.tags),
      custom_attributes: {},
      external_ids: {},
      created_at: row.created_at,
      updated_at: row.updated_at,
      version: row.version,
    }),
    loadRelated: async (ctx, replies, include) => {
      await loadLocations(ctx, replies, include)
      if (include.includes('activities')) await loadActivities(ctx, replies)
    },
    saveLinks: (ctx, id, body, isNew) => setTags(ctx, 'warehouses', id, body.tag_ids, isNew),
    beforeDelete: async (ctx, row) => {
      const locations = ctx.db.selectFrom('warehouse_locations').select('id').where('warehouse_id', '=', row.id)
      const ids = (await locations.execute()).map(({ id }) => id)
      await refuseNamed(ctx, { entity: 'locations', ids, called: `A location of ${row.name}` })
      await refuseIfStocked(ctx, 'warehouse_id', row)
      await clearInventories(ctx, { warehouseId: row.id })
    },
  }),
)
