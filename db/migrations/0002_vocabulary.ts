// Creates the tables of attributes with their unique values, tags, lead sources, lead types, and
// pipelines with their stages.

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
  range,
  references,
  text,
  timestamps,
  version,
} from '../schema/columns.ts'

const attributeTypes = [
  'text',
  'textarea',
  'price',
  'boolean',
  'date',
  'datetime',
  'email',
  'phone',
  'select',
  'multiselect',
  'checkbox',
  'lookup',
  'image',
  'file',
  'address',
  'subheading',
]

const lookupTypes = [
  'leads',
  'lead_sources',
  'lead_types',
  'lead_pipelines',
  'lead_pipeline_stages',
  'users',
  'organizations',
  'persons',
  'warehouses',
  'locations',
  'products',
  'quotes',
]

const entityTypes = ['leads', 'persons', 'organizations', 'products', 'quotes', 'warehouses']

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await createTable(
    db,
    dialect,
    'attributes',
    {
      id: id(),
      code: text(),
      name: text(),
      name_key: key(),
      type: oneOf(attributeTypes),
      entity_type: oneOf(entityTypes),
      lookup_type: nullable(oneOf(lookupTypes)),
      validation: nullable(oneOf(['numeric', 'email', 'decimal', 'url'])),
      sort_order: integer(),
      is_required: flag(false),
      is_unique: flag(false),
      quick_add: flag(true),
      default_value: nullable(json()),
      is_user_defined: flag(true),
      ...timestamps(),
      ...version(),
    },
    {
      unique: [['entity_type', 'code']],
      indexes: [
        ['entity_type', 'sort_order', 'id'],
        ['code', 'id'],
        ['name_key', 'id'],
        ['type', 'id'],
        ['sort_order', 'id'],
        ...listed,
      ],
    },
  )
  await createTable(
    db,
    dialect,
    'attribute_options',
    {
      id: id(),
      attribute_id: references('attributes', 'cascade'),
      name: text(),
      name_key: key(),
      sort_order: integer(),
    },
    { unique: [['attribute_id', 'name_key']] },
  )
  await createTable(
    db,
    dialect,
    'unique_values',
    {
      entity_type: oneOf(entityTypes),
      attribute_id: references('attributes', 'cascade'),
      value: text(),
      entity_id: integer(),
    },
    { primaryKey: ['entity_type', 'attribute_id', 'value'], indexes: [['entity_type', 'entity_id']] },
  )
  await createTable(
    db,
    dialect,
    'tags',
    {
      id: id(),
      name: text(),
      name_key: key(),
      color: text(),
      user_id: references('users', 'set null'),
      ...timestamps(),
      ...version(),
    },
    { unique: [['name_key']], indexes: listed },
  )
  for (const table of ['lead_sources', 'lead_types']) {
    await createTable(
      db,
      dialect,
      table,
      { id: id(), name: text(), name_key: key(), ...timestamps(), ...version() },
      { unique: [['name_key']], indexes: listed },
    )
  }
  await createTable(
    db,
    dialect,
    'lead_pipelines',
    {
      id: id(),
      name: text(),
      name_key: key(),
      is_default: flag(false),
      rotten_days: range(1, 3650, 30),
      ...timestamps(),
      ...version(),
    },
    {
      unique: [['name_key']],
      indexes: [['rotten_days', 'id'], ...listed],
      partial: [{ columns: ['is_default'], isUnique: true, whenTrue: 'is_default' }],
    },
  )
  await createTable(
    db,
    dialect,
    'lead_pipeline_stages',
    {
      id: id(),
      lead_pipeline_id: references('lead_pipelines', 'cascade'),
      code: text(),
      name: text(),
      name_key: key(),
      probability: range(0, 100),
      sort_order: integer(),
      is_user_defined: flag(true),
      ...timestamps(),
    },
    {
      unique: [
        ['lead_pipeline_id', 'code'],
        ['lead_pipeline_id', 'name_key'],
      ],
      indexes: [['lead_pipeline_id', 'sort_order'], ['code']],
    },
  )
}
