// Loads attribute options, and converts attributes and options to their reply form.
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import type { Attribute, AttributeOption, AttributeRow } from './attribute-set.ts'
import { valueTypeOf } from './types.ts'

export interface FullAttributeRow extends AttributeRow {
  sort_order: number
  quick_add: number
  created_at: string
  updated_at: string
  version: number
}

export const loadOptions = async (
  { db }: Context,
  ids: readonly number[],
): Promise<(AttributeOption & { attribute_id: number })[]> =>
  db
    .selectFrom('attribute_options')
    .select(['id', 'attribute_id', 'name', 'sort_order'])
    .where('attribute_id', 'in', [...ids])
    .orderBy('sort_order')
    .orderBy('id')
    .execute()

export const presentOption = ({ id, name, sort_order }: AttributeOption): Schema<'AttributeOption'> => ({
  id,
  name,
  sort_order,
})

export const presentDefault = (row: Pick<AttributeRow, 'type' | 'default_value'>): unknown => {
  if (row.default_value === null) return null
  const stored: unknown = JSON.parse(row.default_value)
  const show = valueTypeOf({ type: row.type as Attribute['type'] })?.show
  return show ? show(stored) : stored
}

export const presentAttribute = (row: FullAttributeRow): Schema<'AttributeDefinition'> => ({
  id: row.id,
  code: row.code,
  name: row.name,
  type: row.type as Schema<'AttributeDefinition'>['type'],
  entity_type: row.entity_type as Schema<'AttributeDefinition'>['entity_type'],
  lookup_type: row.lookup_type as Schema<'AttributeDefinition'>['lookup_type'],
  validation: row.validation as Schema<'AttributeDefinition'>['validation'],
  sort_order: row.sort_order,
  is_required: row.is_required === 1,
  is_unique: row.is_unique === 1,
  quick_add: row.quick_add === 1,
  default_value: presentDefault(row),
  is_user_defined: row.is_user_defined === 1,
  options: [],
  external_ids: {},
  created_at: row.created_at,
  updated_at: row.updated_at,
  version: row.version,
})
