// Creates the tables of leads with their products and tags, and of quotes with their items, leads
// and tags.

import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import {
  createTable,
  date,
  id,
  integer,
  json,
  key,
  listed,
  money,
  nullable,
  range,
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
    'leads',
    {
      id: id(),
      title: text(),
      title_key: key(),
      description: nullable(text()),
      lead_value: money(),
      status: range(1, 3),
      lost_reason: nullable(text()),
      closed_at: nullable(timestamp()),
      expected_close_date: nullable(date()),
      stage_changed_at: timestamp(),
      user_id: references('users', 'set null'),
      person_id: nullable(references('persons', 'restrict')),
      lead_source_id: references('lead_sources', 'restrict'),
      lead_type_id: references('lead_types', 'restrict'),
      lead_pipeline_id: references('lead_pipelines', 'restrict'),
      lead_pipeline_stage_id: references('lead_pipeline_stages', 'restrict'),
      custom_attributes: json('{}'),
      ...timestamps(),
      ...version(),
    },
    {
      indexes: [
        ['title_key', 'id'],
        ['lead_value', 'id'],
        ['status', 'id'],
        ['closed_at', 'id'],
        ['expected_close_date', 'id'],
        ['stage_changed_at', 'id'],
        ['user_id', 'id'],
        ['lead_pipeline_id', 'id'],
        ['lead_pipeline_stage_id', 'id'],
        ...listed,
      ],
    },
  )
  await createTable(
    db,
    dialect,
    'lead_products',
    {
      id: id(),
      lead_id: references('leads', 'cascade'),
      product_id: references('products', 'set null'),
      name: text(),
      sku: text(),
      price: money(),
      amount: money(),
      ...timestamps(),
      quantity: money(10_000),
    },
    { unique: [['lead_id', 'product_id']], indexes: [['product_id', 'lead_id']] },
  )
  await createTable(
    db,
    dialect,
    'lead_tags',
    { lead_id: references('leads', 'cascade'), tag_id: references('tags', 'cascade') },
    { primaryKey: ['lead_id', 'tag_id'], indexes: [['tag_id', 'lead_id']] },
  )
  await createTable(
    db,
    dialect,
    'quotes',
    {
      id: id(),
      subject: text(),
      subject_key: key(),
      description: nullable(text()),
      person_id: references('persons', 'restrict'),
      user_id: references('users', 'set null'),
      billing_address: json(),
      shipping_address: nullable(json()),
      expiry_date: date(),
      discount_percent: money(0),
      adjustment_amount: money(0),
      discount_amount: money(0),
      tax_amount: money(0),
      subtotal: money(0),
      grand_total: money(0),
      custom_attributes: json('{}'),
      ...timestamps(),
      ...version(),
    },
    {
      indexes: [
        ['subject_key', 'id'],
        ['subtotal', 'id'],
        ['discount_amount', 'id'],
        ['tax_amount', 'id'],
        ['grand_total', 'id'],
        ['expiry_date', 'id'],
        ['user_id', 'id'],
        ...listed,
      ],
    },
  )
  await createTable(
    db,
    dialect,
    'quote_items',
    {
      id: id(),
      quote_id: references('quotes', 'cascade'),
      product_id: references('products', 'set null'),
      sku: text(),
      name: text(),
      quantity: money(),
      price: money(),
      coupon_code: nullable(text()),
      discount_percent: money(0),
      discount_amount: money(0),
      tax_percent: money(0),
      tax_amount: money(0),
      total: money(0),
      sort_order: integer(),
      ...timestamps(),
    },
    { indexes: [['product_id', 'quote_id']] },
  )
  await createTable(
    db,
    dialect,
    'lead_quotes',
    { lead_id: references('leads', 'cascade'), quote_id: references('quotes', 'cascade') },
    { primaryKey: ['lead_id', 'quote_id'] },
  )
  await createTable(
    db,
    dialect,
    'quote_tags',
    { quote_id: references('quotes', 'cascade'), tag_id: references('tags', 'cascade') },
    { primaryKey: ['quote_id', 'tag_id'] },
  )
}
