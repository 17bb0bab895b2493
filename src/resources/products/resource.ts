// Products. A product has no owner, so all users with the permission see all
// products. Product lines store their own copy of name, SKU and price.
import { operations } from '../../contract/operations.gen.ts'
import type { Schema } from '../../contract/types.ts'
import { canCall } from '../../kernel/context.ts'
import { flagField, importedField, linkedField, moneyField, textField, valueField } from '../../kernel/query/filter.ts'
import { defineResource } from '../../kernel/resource/define-resource.ts'
import { nameKey, skuKey } from '../../kernel/resource/named-references.ts'
import { unique } from '../../kernel/resource/references.ts'
import { fromScaled, scaled } from '../../kernel/values/money.ts'
import { textKey } from '../../kernel/values/names.ts'
import { withAttributes } from '../attributes/with-attributes.ts'
import { checkTagIds, readTags, setTags, tagsIn } from '../tags/tag-links.ts'
import { loadInventories } from './inventories.ts'
import { searchDocument } from './search-document.ts'

export const products = defineResource(
  withAttributes('products', {
    noun: 'product',
    table: 'products',
    externalIds: { table: 'product_external_ids', column: 'product_id' },
    namedBy: { keys: { name: nameKey, sku: skuKey } },
    operations: {
      list: 'listProducts',
      get: 'getProduct',
      create: 'createProduct',
      update: 'updateProduct',
      delete: 'deleteProduct',
    },
    rows: (ctx, db) =>
      db
        .selectFrom('products')
        .selectAll('products')
        .select(tagsIn(ctx, db, 'products')),
    sort: {
      id: 'products.id',
      sku: 'products.sku_key',
      name: 'products.name_key',
      price: 'products.price',
      quantity: 'products.quantity',
      in_stock: 'products.in_stock',
      allocated: 'products.allocated',
      available: 'products.available',
      created_at: 'products.created_at',
      updated_at: 'products.updated_at',
    },
    filter: {
      sku: textField('products.sku_key'),
      name: textField('products.name_key'),
      price: moneyField('products.price'),
      discontinued: flagField('products.discontinued'),
      quantity: moneyField('products.quantity'),
      in_stock: valueField('products.in_stock'),
      available: valueField('products.available'),
      warehouse_id: linkedField('product_inventories', 'products.id', 'product_id', 'warehouse_id'),
      tag_id: linkedField('product_tags', 'products.id', 'product_id', 'tag_id'),
      import_id: importedField('products'),
    },
    searchDocument,
    search: [
      { indexed: 'products' },
      { key: 'products.sku_key' },
      { key: 'products.name_key' },
      { text: 'products.description' },
    ],
    withoutColumn: { tag_ids: 'links' },
    toRow: async ({ sku, name, description, quantity, price, discontinued, tag_ids }, writing) => {
      const { ctx, current, errors } = writing
      const key = sku === undefined ? undefined : textKey(sku)
      await unique(writing, {
        field: 'sku',
        table: 'products',
        column: 'sku_key',
        key,
        entity: 'products',
        except: current?.id ?? null,
        noun: 'product',
      })
      await checkTagIds(ctx, errors, tag_ids)
      return {
        columns: {
          sku,
          sku_key: key,
          name,
          name_key: name === undefined ? undefined : textKey(name),
          description,
          quantity: scaled(quantity),
          price: scaled(price),
          ...(discontinued !== undefined && { discontinued: Number(discontinued) }),
        },
      }
    },
    toReply: (row): Schema<'Product'> => ({
      id: row.id,
      sku: row.sku,
      name: row.name,
      description: row.description,
      quantity: fromScaled(row.quantity),
      price: fromScaled(row.price),
      discontinued: row.discontinued === 1,
      in_stock: row.in_stock,
      allocated: row.allocated,
      available: row.available,
      tags: readTags(row.tags),
      custom_attributes: {},
      external_ids: {},
      created_at: row.created_at,
      updated_at: row.updated_at,
      version: row.version,
    }),
    loadRelated: async (ctx, replies, include) => {
      if (!include.includes('inventories') || !canCall(ctx, operations.listProductInventories)) return
      const productIds = replies.map(({ id }) => id)
      const inventories = await loadInventories(ctx, { productIds })
      for (const reply of replies) reply.inventories = inventories.filter(({ product_id }) => product_id === reply.id)
    },
    saveLinks: (ctx, id, { tag_ids }, isNew) => setTags(ctx, 'products', id, tag_ids, isNew),
  }),
)
