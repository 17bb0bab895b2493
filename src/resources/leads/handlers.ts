// Handlers for the lead operations other than CRUD: move, mass update, product lines, tags,
// export, and the lead lists of persons and organizations.
import { type Bound, cachedQuery } from '../../../db/cached-query.ts'
import type { Db } from '../../../db/store.ts'
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { invalid, notFound, ValidationErrors } from '../../kernel/errors.ts'
import type { Handler, Handlers } from '../../kernel/handler.ts'
import { withoutVisibility } from '../../kernel/query/visibility.ts'
import { exportOf } from '../../kernel/resource/export.ts'
import { massUpdate } from '../../kernel/resource/mass.ts'
import type { Snapshot } from '../../kernel/write/events.ts'
import { transaction, write } from '../../kernel/write/write.ts'
import { organizations } from '../organizations/resource.ts'
import { persons } from '../persons/resource.ts'
import { warnOfStock } from '../products/stock-warnings.ts'
import { createTagHandlers } from '../tags/tag-handlers.ts'
import { leadStatus } from './change-stage.ts'
import { leadColumns } from './columns.ts'
import { kanbanLeads } from './kanban.ts'
import { bookChange } from './outcomes.ts'
import {
  loadProductLines,
  type ProductLineWithProduct,
  planProductLine,
  presentProductLine,
  pricingOf,
  saveProductLine,
} from './product-lines.ts'
import { leads } from './resource.ts'

const tagged = createTagHandlers('leads', leads)
type LineBody = { quantity?: number; price?: number }

/** The pipeline of a lead, and a stage if it belongs to that pipeline. */
const leadWithStage = cachedQuery((db: Db, id: Bound<number>, stageId: Bound<number>) =>
  db
    .selectFrom('leads')
    .innerJoin('lead_pipelines', 'lead_pipelines.id', 'leads.lead_pipeline_id')
    .leftJoin('lead_pipeline_stages as stage', (join) =>
      join.onRef('stage.lead_pipeline_id', '=', 'leads.lead_pipeline_id').on('stage.id', '=', stageId),
    )
    .select(['lead_pipelines.name as pipeline', 'stage.id as stage'])
    .where('leads.id', '=', id),
)

/**
 * Moves a lead to another stage of the lead's pipeline. Throws 422 for a stage of
 * another pipeline. The mass update also calls this function.
 */
async function move(ctx: Context, id: number, body: Schema<'LeadMove'>): Promise<Schema<'Lead'>> {
  return transaction(ctx, async (ctx) => {
    const { lead_pipeline_stage_id: stageId } = body
    const [lead] = await leadWithStage(ctx.db, id, stageId)
    // The update checks that the caller may see the lead, so only a refusal checks it here.
    if (lead?.stage === null) {
      await leads.assertVisible(ctx, id)
      throw invalid({ lead_pipeline_stage_id: [`The pipeline ${lead.pipeline} has no stage with id ${stageId}.`] })
    }
    return leads.update(ctx, id, body)
  })
}

const moveLead: Handler<'moveLead'> = async (ctx, { params, body }) => ({
  data: await move(ctx, params.id, body),
  message: 'Lead moved.',
})

const lineOf = async (ctx: Context, leadId: number, productId: number) =>
  (await loadProductLines(ctx, [leadId])).find(({ product_id }) => product_id === productId)

export async function assertProductLine(ctx: Context, leadId: number, productId: number): Promise<void> {
  if (!(await lineOf(ctx, leadId, productId))) throw notFound('product line for product', productId)
}

/**
 * Raises the version of the lead after a change of its lines, and books the lines of a won lead.
 */
async function touch(ctx: Context, id: number): Promise<void> {
  await leads.touch(ctx, id)
  const { status } = await ctx.db.selectFrom('leads').select('status').where('id', '=', id).executeTakeFirstOrThrow()
  if (status === leadStatus.open) return
  const lead = await leads.get(withoutVisibility(ctx), id)
  await bookChange(ctx, id, { before: lead, after: lead })
}

/**
 * Adds or changes the product line of one product. The write emits `leads.product.create` or
 * `leads.product.update`. Unchanged values write nothing.
 */
async function putLine(
  ctx: Context,
  leadId: number,
  productId: number,
  body: LineBody,
): Promise<Schema<'LeadProduct'>> {
  const was = await lineOf(ctx, leadId, productId)
  const errors = new ValidationErrors()
  const input = { ...body, product_id: productId }
  const planned = planProductLine(was, input, await pricingOf(ctx, [input]), errors)
  errors.throwIfAny()
  await warnOfStock(ctx, [planned], () => 'quantity')
  const about = {
    entity: 'leads',
    input,
    id: leadId,
    related: { type: 'products', id: productId },
  }
  const work = async (ctx: Context) => {
    await saveProductLine(ctx, leadId, was, planned)
    const line = await lineOf(ctx, leadId, productId)
    return { id: leadId, entity: { lead_id: leadId, ...(line && presentProductLine(line)) } as Snapshot }
  }
  if (!was) await write(ctx, 'leads.product.create', about, work)
  else if (was.quantity !== planned.quantity || was.price !== planned.price) {
    await write(
      ctx,
      'leads.product.update',
      { ...about, before: { lead_id: leadId, ...presentProductLine(was) } },
      work,
    )
  }
  const line = await lineOf(ctx, leadId, productId)
  if (!line) throw notFound('product line', productId)
  if (!was || line.updated_at !== was.updated_at || line.amount !== was.amount) await touch(ctx, leadId)
  return presentProductLine(line)
}

const attachLeadProduct: Handler<'attachLeadProduct'> = (ctx, { params, body }) =>
  transaction(ctx, async (ctx) => {
    await leads.assertVisible(ctx, params.id)
    const { product_id, ...rest } = body
    return { data: await putLine(ctx, params.id, product_id, rest), message: 'Product added to the lead.' }
  })

/** Returns the line of the lead for the product. Throws 404 when there is none. */
export async function requireProductLine(
  ctx: Context,
  leadId: number,
  productId: number,
): Promise<ProductLineWithProduct> {
  const line = await lineOf(ctx, leadId, productId)
  if (!line) throw notFound('product line for product', productId)
  return line
}

const updateLeadProduct: Handler<'updateLeadProduct'> = (ctx, { params, body }) =>
  transaction(ctx, async (ctx) => {
    await leads.assertVisible(ctx, params.id)
    await requireProductLine(ctx, params.id, params.product_id)
    return { data: await putLine(ctx, params.id, params.product_id, body), message: 'Product line updated.' }
  })

const detachLeadProduct: Handler<'detachLeadProduct'> = (ctx, { params }) =>
  transaction(ctx, async (ctx) => {
    await leads.assertVisible(ctx, params.id)
    const line = await requireProductLine(ctx, params.id, params.product_id)
    const before = { lead_id: params.id, ...presentProductLine(line) }
    await write(
      ctx,
      'leads.product.delete',
      { entity: 'leads', input: {}, id: params.id, before, related: { type: 'products', id: params.product_id } },
      async (ctx) => {
        await ctx.db.deleteFrom('lead_products').where('id', '=', line.id).execute()
        return { id: params.id, entity: null }
      },
    )
    await touch(ctx, params.id)
    return { message: 'Product removed from the lead.' }
  })

export const handlers = {
  kanbanLeads,
  // A mass update with `value` moves each lead to the stage with this id. A mass update with
  // `changes` is an ordinary update of each lead.
  massUpdateLeads: massUpdate(leads, (ctx, id, stageId: number) => move(ctx, id, { lead_pipeline_stage_id: stageId })),
  exportLeads: exportOf(leads, leadColumns),
  moveLead,
  listLeadProducts: (ctx, { params }) =>
    leads.withVersionOf(ctx, params.id, async () => ({
      data: (await loadProductLines(ctx, [params.id])).map(presentProductLine),
    })),
  attachLeadProduct,
  updateLeadProduct,
  detachLeadProduct,
  listLeadTags: tagged.list,
  attachLeadTag: tagged.attach,
  detachLeadTag: tagged.detach,
} satisfies Partial<Handlers>

/**
 * Handlers that list the leads of a person or organization. The person or organization must be
 * visible to the caller.
 */
export const subLists = {
  listPersonLeads: async (ctx, { params, query }) => {
    await persons.assertVisible(ctx, params.id)
    return leads.list(ctx, query, (rows) => rows.where('leads.person_id', '=', params.id))
  },
  listOrganizationLeads: async (ctx, { params, query }) => {
    await organizations.assertVisible(ctx, params.id)
    return leads.list(ctx, query, (rows) => rows.where('persons.organization_id', '=', params.id))
  },
} satisfies Partial<Handlers>
