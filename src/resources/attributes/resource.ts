// Defines the attributes resource: custom fields of records. Lists also contain the
// built-in fields.
import type { Schema } from '../../contract/types.ts'
import { type Context, warn } from '../../kernel/context.ts'
import { isProtected } from '../../kernel/errors.ts'
import type { Handlers } from '../../kernel/handler.ts'
import { flagField, textField, valueField } from '../../kernel/query/filter.ts'
import { defineResource } from '../../kernel/resource/define-resource.ts'
import { upsertHandler } from '../../kernel/resource/external-ids.ts'
import { massDelete, massUpdate } from '../../kernel/resource/mass.ts'
import { answering, inSteps } from '../../kernel/write/idempotency.ts'
import { transaction } from '../../kernel/write/write.ts'
import { releaseAttributeFiles } from './attachments.ts'
import { type AttributeOption, markAttributesChanged, toAttribute } from './attribute-set.ts'
import { createAttributeIndex, dropAttributeIndex } from './indexes.ts'
import { lookupAttributeValues } from './lookups.ts'
import { type OptionPlan, saveOptions } from './options.ts'
import { clearValues, removeOptions } from './record-values.ts'
import { loadOptions, presentAttribute, presentOption } from './rows.ts'
import { toAttributeRow } from './to-row.ts'

declare module '../../kernel/context.ts' {
  interface SliceFunctions {
    /** Returns a warning for each public form that lacks this required attribute. */
    formsLacking: (ctx: Context, attributeId: number) => Promise<Warning[]>
  }
}

type Body = Schema<'AttributeUpdate'>

const define = (force: boolean) =>
  defineResource({
    noun: 'attribute',
    table: 'attributes',
    externalIds: { table: 'attribute_external_ids', column: 'attribute_id' },
    operations: {
      list: 'listAttributes',
      get: 'getAttribute',
      create: 'createAttribute',
      update: 'updateAttribute',
      delete: 'deleteAttribute',
    },
    rows: (_ctx, db) => db.selectFrom('attributes').selectAll('attributes'),
    sort: {
      id: 'attributes.id',
      code: 'attributes.code',
      name: 'attributes.name_key',
      type: 'attributes.type',
      entity_type: 'attributes.entity_type',
      sort_order: 'attributes.sort_order',
      created_at: 'attributes.created_at',
    },
    filter: {
      code: textField('attributes.code'),
      name: textField('attributes.name_key'),
      type: valueField('attributes.type'),
      entity_type: valueField('attributes.entity_type'),
      is_user_defined: flagField('attributes.is_user_defined'),
      is_required: flagField('attributes.is_required'),
      is_unique: flagField('attributes.is_unique'),
      quick_add: flagField('attributes.quick_add'),
      sort_order: valueField('attributes.sort_order'),
    },
    search: [{ text: 'attributes.code' }, { key: 'attributes.name_key' }],
    governs: ['type', 'entity_type', 'lookup_type'],
    withoutColumn: { options: 'rows' },
    toRow: async (body, writing) => {
      const { columns, ...options } = await toAttributeRow(body, writing, force)
      return { columns, save: (ctx, id) => saveOptionsAndIndex(ctx, id, body, options) }
    },
    toReply: presentAttribute,
    loadRelated: async (ctx, replies) => {
      const options = await loadOptions(
        ctx,
        replies.map(({ id }) => id),
      )
      for (const reply of replies)
        reply.options = options.filter(({ attribute_id }) => attribute_id === reply.id).map(presentOption)
    },
    beforeDelete: async (ctx, row) => {
      if (row.is_user_defined === 0) throw isProtected(`${row.name} is built in and cannot be deleted.`)
      markAttributesChanged(ctx)
      const attribute = toAttribute(row, [])
      await releaseAttributeFiles(ctx, attribute)
      // The index is dropped first, so that SQLite need not update the index while the values are
      // cleared.
      await dropAttributeIndex(ctx, attribute)
      await clearValues(ctx, attribute)
    },
  })

/**
 * Saves the options and creates the index of a saved attribute. Adds a warning for each public form
 * that lacks the attribute although it is now required.
 */
async function saveOptionsAndIndex(
  ctx: Context,
  id: number,
  body: Body,
  { present, plan }: { present: AttributeOption[]; plan: OptionPlan },
): Promise<void> {
  markAttributesChanged(ctx)
  const row = await ctx.db.selectFrom('attributes').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
  const attribute = toAttribute(row, present)
  if (plan.removed.length > 0)
    await removeOptions(
      ctx,
      attribute,
      plan.removed.map((option) => option.id),
    )
  await saveOptions(ctx, id, present, plan)
  if (attribute.isOwn && body.type !== undefined) await createAttributeIndex(ctx, attribute)
  if (attribute.isOwn && attribute.isRequired && (body.is_required || body.default_value === null))
    for (const { field, message } of await ctx.services.slices.formsLacking(ctx, id)) warn(ctx, field, message)
}

export const attributes = define(false)
const attributesForced = define(true)

export const handlers = {
  // The next four operations are long. Creating an attribute builds an index over all records, and
  // updating or deleting one may change the values of all records.
  createAttribute: inSteps((ctx, input) =>
    answering(ctx, (ctx) => attributes.handlers.createAttribute(ctx, input), { isLong: true }),
  ),
  updateAttribute: (ctx, input) =>
    transaction(
      ctx,
      (ctx) => (input.query.force ? attributesForced : attributes).handlers.updateAttribute(ctx, input),
      {
        isLong: true,
      },
    ),
  upsertAttribute: upsertHandler(attributes, {
    create: 'createAttribute',
    update: 'updateAttribute',
    creating: attributes.handlers.createAttribute,
    updating: attributes.handlers.updateAttribute,
    isLong: true,
  }),
  deleteAttribute: (ctx, input) =>
    transaction(ctx, (ctx) => attributes.handlers.deleteAttribute(ctx, input), { isLong: true }),
  massUpdateAttributes: massUpdate(attributes, (ctx, id, quick_add: boolean) =>
    attributes.update(ctx, id, { quick_add }),
  ),
  massDeleteAttributes: massDelete(attributes, { isLong: true }),
  lookupAttributeValues,
} satisfies Partial<Handlers>
