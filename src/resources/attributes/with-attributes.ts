// Adds custom attributes to the definition of a resource. validate-values.ts
// computes the values to store, replies.ts the values to show, and queries.ts the filters and sort
// keys.
import type { DB as Tables } from '../../../db/tables.gen.ts'
import type { OperationId } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import type { ValidationErrors } from '../../kernel/errors.ts'
import type { ColumnsOf, Definition, InferredLast } from '../../kernel/resource/definition.ts'
import { attachValueFiles } from './attachments.ts'
import { customAttributes, type EntityType } from './attribute-set.ts'
import { moveFiles, moveValues, moveValuesBack } from './merged-values.ts'
import { attributeFilter, attributeSorts } from './queries.ts'
import { type CustomReply, presentValues } from './replies.ts'
import { restoreValues } from './restore-values.ts'
import { valueTypeOf } from './types.ts'
import { saveUniqueKeys } from './unique-keys.ts'
import { parseStored, planValues } from './validate-values.ts'

export type { EntityType } from './attribute-set.ts'

interface Row {
  id: number
  custom_attributes: string
}

const sentIn = (body: unknown): unknown => (body as { custom_attributes?: unknown }).custom_attributes

/**
 * Returns the definition with `custom_attributes` added to columns, replies, filters and sort keys.
 * The `rows` of the definition must select the column `custom_attributes`.
 */
export function withAttributes<
  Table extends keyof Tables,
  L extends OperationId,
  G extends OperationId,
  C extends OperationId,
  U extends OperationId,
  D extends OperationId,
  R = InferredLast,
  Columns extends ColumnsOf<Table> = InferredLast,
>(entity: EntityType, d: Definition<Table, L, G, C, U, D, R, Columns>): Definition<Table, L, G, C, U, D, R, Columns> {
  return {
    ...d,
    sort: async (ctx, query) => ({
      ...(typeof d.sort === 'function' ? await d.sort(ctx, query) : d.sort),
      ...(await attributeSorts(ctx, entity, query)),
    }),
    filter: { ...d.filter, custom_attributes: attributeFilter(entity) },
    toRow: async (body, writing) => {
      // Attributes are validated first, because the `toRow` of some resources creates other records
      // when there are no errors.
      const current = writing.current as Row | null
      const values = await planValues(entity, sentIn(body), { ...writing, current })
      const { columns, save } = await d.toRow(body, writing)
      if (values === undefined) return { columns, save }
      return {
        columns: { ...columns, custom_attributes: values },
        save: async (ctx, id) => {
          await save?.(ctx, id)
          await attachValueFiles(ctx, entity, id)
          await saveRecordKeys(ctx, entity, id)
        },
      }
    },
    toReply: (row, ctx) => {
      const reply = d.toReply(row, ctx)
      ;(reply as CustomReply).custom_attributes = JSON.parse((row as Row).custom_attributes)
      return reply
    },
    loadRelated: async (ctx, replies, include) => {
      await d.loadRelated?.(ctx, replies, include)
      await presentValues(ctx, entity, replies as CustomReply[], include)
    },
    ...(d.merging && {
      merging: {
        ...d.merging,
        refresh: async (ctx, row) => {
          await d.merging?.refresh(ctx, row)
          await saveRecordKeys(ctx, entity, (row as Row).id)
        },
        moveValues: (ctx, from, to) => moveValues(ctx, entity, from, to),
        moveValuesBack,
        moveFiles: (ctx, way) => moveFiles(ctx, entity, way),
      },
    }),
    beforeDelete: async (ctx, row) => {
      await d.beforeDelete?.(ctx, row)
      const { id } = row as Row
      await ctx.db.deleteFrom('unique_values').where('entity_type', '=', entity).where('entity_id', '=', id).execute()
    },
    onRestore: async (ctx, restored) => ({
      ...(await d.onRestore?.(ctx, restored)),
      ...(await restoreValues(ctx, entity, restored)),
    }),
  }
}

/**
 * Validates the custom attributes of a second record that the same write creates, such as the
 * person of a new lead.
 */
export const checkValues = async (
  ctx: Context,
  entity: EntityType,
  body: unknown,
  errors: ValidationErrors,
): Promise<void> => void (await planValues(entity, sentIn(body), { ctx, errors, current: null }))

async function saveRecordKeys(ctx: Context, entity: EntityType, id: number): Promise<void> {
  const unique = (await customAttributes(ctx, entity)).filter(({ isUnique }) => isUnique)
  if (unique.length === 0) return
  const row = ctx.db.selectFrom(entity).select('custom_attributes').where('id', '=', id)
  const stored = parseStored((await row.executeTakeFirstOrThrow()).custom_attributes)
  for (const attribute of unique) {
    const value = stored[attribute.code] ?? null
    const keys = value === null ? [] : (valueTypeOf(attribute)?.keys?.(value) ?? [])
    await saveUniqueKeys(ctx, attribute, id, keys)
  }
}
