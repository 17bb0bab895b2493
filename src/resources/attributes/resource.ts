// Attributes (DOMAIN 8.1): the installation's own fields of a resource, and the built-in ones they stand beside.
import type { Schema } from '../../contract/types.ts'
import { type Context, warn } from '../../kernel/context.ts'
import { isProtected, ValidationErrors } from '../../kernel/errors.ts'
import type { Handlers } from '../../kernel/handler.ts'
import { flag, text, value } from '../../kernel/query/filter.ts'
import { defineResource } from '../../kernel/resource/define-resource.ts'
import { massDestroy, massUpdate } from '../../kernel/resource/mass.ts'
import { answering, inSteps } from '../../kernel/write/idempotency.ts'
import { longTransaction } from '../../kernel/write/write.ts'
import { releaseFilesOf } from './attachments.ts'
import { clearAll, takeOptions } from './carriers.ts'
import { columnsOf } from './change.ts'
import { createIndex, dropIndex } from './indexes.ts'
import { lookupAttributeValues } from './lookups.ts'
import { keepOptions, planOptions } from './options.ts'
import { optionsOf, presentOption, presentRow } from './rows.ts'
import { attributeOf, attributesChange } from './set.ts'

declare module '../../kernel/context.ts' {
  interface SliceFunctions {
    /** Warnings about public forms that do not ask for a required attribute. */
    formsLacking: (ctx: Context, attributeId: number) => Promise<Warning[]>
  }
}

type Body = Schema<'AttributeUpdate'>

const define = (force: boolean) =>
  defineResource({
    noun: 'attribute',
    table: 'attributes',
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
    filter: () => ({
      code: text('attributes.code'),
      name: text('attributes.name_key'),
      type: value('attributes.type'),
      entity_type: value('attributes.entity_type'),
      is_user_defined: flag('attributes.is_user_defined'),
      is_required: flag('attributes.is_required'),
      is_unique: flag('attributes.is_unique'),
      quick_add: flag('attributes.quick_add'),
      sort_order: value('attributes.sort_order'),
    }),
    search: [{ text: 'attributes.code' }, { key: 'attributes.name_key' }],
    governs: ['type', 'entity_type', 'lookup_type'],
    toRow: (body, writing) => columnsOf(body, writing, force),
    toReply: presentRow,
    loadRelated: async (ctx, replies) => {
      const options = await optionsOf(
        ctx,
        replies.map(({ id }) => id),
      )
      for (const reply of replies)
        reply.options = options.filter(({ attribute_id }) => attribute_id === reply.id).map(presentOption)
    },
    afterSave: (ctx, id, body) => carryOut(ctx, id, body),
    beforeDelete: async (ctx, row) => {
      if (row.is_user_defined === 0) throw isProtected(`${row.name} is built in and cannot be deleted.`)
      attributesChange(ctx)
      const attribute = attributeOf(row, [])
      await releaseFilesOf(ctx, attribute)
      // First, so that it is not kept in step with what goes.
      await dropIndex(ctx, attribute)
      await clearAll(ctx, attribute)
    },
  })

/** Options and index, as the row says by now. */
async function carryOut(ctx: Context, id: number, body: Body): Promise<void> {
  attributesChange(ctx)
  const present = await optionsOf(ctx, [id])
  const row = await ctx.db.selectFrom('attributes').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
  const attribute = attributeOf(row, present)
  const plan = planOptions(present, body.options, new ValidationErrors())
  if (plan.removed.length > 0)
    await takeOptions(
      ctx,
      attribute,
      plan.removed.map((option) => option.id),
    )
  await keepOptions(ctx, id, present, plan)
  if (attribute.isOwn && body.type !== undefined) await createIndex(ctx, attribute)
  if (attribute.isOwn && attribute.isRequired && (body.is_required || body.default_value === null))
    for (const { field, message } of await ctx.services.slices.formsLacking(ctx, id)) warn(ctx, field, message)
}

export const attributes = define(false)
const forcing = define(true)

export const handlers = {
  // An index of all records is made, or their values are taken.
  createAttribute: inSteps((ctx, input) =>
    answering(ctx, (ctx) => attributes.handlers.createAttribute(ctx, input), { isLong: true }),
  ),
  updateAttribute: (ctx, input) =>
    longTransaction(ctx, (ctx) => (input.query.force ? forcing : attributes).handlers.updateAttribute(ctx, input)),
  deleteAttribute: (ctx, input) => longTransaction(ctx, (ctx) => attributes.handlers.deleteAttribute(ctx, input)),
  massUpdateAttributes: massUpdate(attributes, (ctx, id, quick_add: boolean) =>
    attributes.update(ctx, id, { quick_add }),
  ),
  massDestroyAttributes: massDestroy(attributes, { isLong: true }),
  lookupAttributeValues,
} satisfies Partial<Handlers>
