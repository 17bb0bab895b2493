// Custom attributes of a record (DOMAIN 8.2, 8.3) by composition: `defineResource(withAttributes('leads', { … }))`. This puts
// the parts together; what is stored is decided in plan.ts, what is shown in replies.ts, what is found in queries.ts.
import type { DB as Tables } from '../../../db/tables.gen.ts'
import type { OperationId } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import type { ValidationErrors } from '../../kernel/errors.ts'
import type { Definition } from '../../kernel/resource/definition.ts'
import { keepFiles } from './attachments.ts'
import { planValues, readStored } from './plan.ts'
import { attributeFilter, attributeSorts } from './queries.ts'
import { type Carrier, gatherValues } from './replies.ts'
import { mendValues } from './restore-values.ts'
import { type EntityType, ownAttributes } from './set.ts'
import { typeOf } from './types.ts'
import { keepKeys } from './unique.ts'

export type { EntityType } from './set.ts'

interface Row {
  id: number
  custom_attributes: string
}

const sentIn = (body: unknown): unknown => (body as { custom_attributes?: unknown }).custom_attributes

/**
 * The definition with `custom_attributes` in its columns, replies, filters and sort keys. Its `present` answers
 * `custom_attributes: {}`, its `rows` select the column `custom_attributes`; the rest is done here.
 */
export function withAttributes<
  Table extends keyof Tables,
  L extends OperationId,
  G extends OperationId,
  C extends OperationId,
  U extends OperationId,
  D extends OperationId,
  R,
>(entity: EntityType, d: Definition<Table, L, G, C, U, D, R>): Definition<Table, L, G, C, U, D, R> {
  return {
    ...d,
    sort: async (ctx, query) => ({
      ...(typeof d.sort === 'function' ? await d.sort(ctx, query) : d.sort),
      ...(await attributeSorts(ctx, entity, query)),
    }),
    filter: async (ctx, query) => ({
      ...(await d.filter(ctx, query)),
      ...(await attributeFilter(ctx, entity, query)),
    }),
    toRow: async (body, writing) => {
      // First, because the columns of some records create others once nothing is wrong.
      const current = writing.current as Row | null
      const values = await planValues(entity, sentIn(body), { ...writing, current })
      return { ...(await d.toRow(body, writing)), custom_attributes: values }
    },
    toReply: (row, ctx) => {
      const reply = d.toReply(row, ctx)
      ;(reply as Carrier).custom_attributes = JSON.parse((row as Row).custom_attributes)
      return reply
    },
    loadRelated: async (ctx, replies, include) => {
      await d.loadRelated?.(ctx, replies, include)
      await gatherValues(ctx, entity, replies as Carrier[], include)
    },
    afterSave: async (ctx, id, body) => {
      await d.afterSave?.(ctx, id, body)
      await keepFiles(ctx, entity, id)
      await keepUnique(ctx, entity, id)
    },
    beforeDelete: async (ctx, row) => {
      await d.beforeDelete?.(ctx, row)
      const { id } = row as Row
      await ctx.db.deleteFrom('unique_values').where('entity_type', '=', entity).where('entity_id', '=', id).execute()
    },
    onRestore: async (ctx, mending) => ({
      ...(await d.onRestore?.(ctx, mending)),
      ...(await mendValues(ctx, entity, mending)),
    }),
  }
}

/** Finds what is wrong with the values of a record that another one creates on the way. */
export const checkValues = async (
  ctx: Context,
  entity: EntityType,
  body: unknown,
  found: ValidationErrors,
): Promise<void> => void (await planValues(entity, sentIn(body), { ctx, found, current: null }))

async function keepUnique(ctx: Context, entity: EntityType, id: number): Promise<void> {
  const unique = (await ownAttributes(ctx, entity)).filter(({ isUnique }) => isUnique)
  if (unique.length === 0) return
  const row = ctx.db.selectFrom(entity).select('custom_attributes').where('id', '=', id)
  const stored = readStored((await row.executeTakeFirstOrThrow()).custom_attributes)
  for (const attribute of unique) {
    const value = stored[attribute.code] ?? null
    const keys = value === null ? [] : (typeOf(attribute)?.keys?.(value) ?? [])
    await keepKeys(ctx, attribute, id, keys)
  }
}
