// Leads: sales opportunities that move through a pipeline. change-stage.ts has the rules for
// stage changes, product-lines.ts the product lines, and person.ts the person of a lead.

import { sql } from 'kysely'
import type { Schema } from '../../contract/types.ts'
import { type Context, canCall, warn } from '../../kernel/context.ts'
import { importedField, linkedField, moneyField, textField, timeField, valueField } from '../../kernel/query/filter.ts'
import { idsInSight, visible, withoutVisibility } from '../../kernel/query/visibility.ts'
import { defineResource } from '../../kernel/resource/define-resource.ts'
import { checkReference, expandReferences } from '../../kernel/resource/references.ts'
import { today } from '../../kernel/values/format.ts'
import { fromScaled, scaled, totalOf } from '../../kernel/values/money.ts'
import { textKey } from '../../kernel/values/names.ts'
import { withAttributes } from '../attributes/with-attributes.ts'
import { organizations } from '../organizations/resource.ts'
import { personRef } from '../persons/contacts.ts'
import { checkEmail, countEmails, linkEmail } from '../persons/emails.ts'
import { persons } from '../persons/resource.ts'
import { pipelines } from '../pipelines/resource.ts'
import { warnOfStock } from '../products/stock-warnings.ts'
import { sources } from '../sources/resource.ts'
import { checkTagIds, readTags, setTags, tagsIn } from '../tags/tag-links.ts'
import { types } from '../types/resource.ts'
import { resolveOwnerId, userRef } from '../users/owner.ts'
import { pictureUrl } from '../users/picture.ts'
import { users } from '../users/resource.ts'
import { leadStatus, outcomeEvents, planStageChange } from './change-stage.ts'
import { defaultVocabularyId, repairLead } from './default-references.ts'
import { bookChange } from './outcomes.ts'
import { matchesPersonAddress, resolvePersonId } from './person.ts'
import {
  loadProductLines,
  parseProductLines,
  planProductLines,
  presentProductLine,
  productLinesColumn,
  saveProductLines,
} from './product-lines.ts'
import { includeQuotes, quotesCount } from './quotes.ts'
import { rottenDays, rottenFilter } from './rotting.ts'
import { searchDocument } from './search-document.ts'

type Body = Schema<'LeadUpdate'> & Pick<Schema<'LeadCreate'>, 'email_id'>

export const leads = defineResource(
  withAttributes('leads', {
    noun: 'lead',
    table: 'leads',
    externalIds: { table: 'lead_external_ids', column: 'lead_id' },
    operations: { list: 'listLeads', get: 'getLead', create: 'createLead', update: 'updateLead', delete: 'deleteLead' },
    rows: (ctx, db) =>
      db
        .selectFrom('leads')
        // The joins are left joins so that SQLite reads the table leads first in every query plan.
        // Every lead has a row in the first four joined tables.
        .leftJoin('lead_sources', 'lead_sources.id', 'leads.lead_source_id')
        .leftJoin('lead_types', 'lead_types.id', 'leads.lead_type_id')
        .leftJoin('lead_pipelines', 'lead_pipelines.id', 'leads.lead_pipeline_id')
        .leftJoin('lead_pipeline_stages', 'lead_pipeline_stages.id', 'leads.lead_pipeline_stage_id')
        .leftJoin('users', 'users.id', 'leads.user_id')
        .leftJoin('persons', 'persons.id', 'leads.person_id')
        .leftJoin('organizations', 'organizations.id', 'persons.organization_id')
        .selectAll('leads')
        .select([tagsIn(ctx, db, 'leads'), productLinesColumn(ctx, db)])
        .select([
          'users.name as user_name',
          'users.email as user_email',
          'users.image_file_id as user_image',
          'persons.name as person_name',
          'persons.emails as person_emails',
        ])
        .select(['organizations.id as organization_id', 'organizations.name as organization_name'])
        .select([
          'lead_sources.name as source_name',
          'lead_types.name as type_name',
          'lead_pipelines.name as pipeline_name',
          'lead_pipelines.rotten_days',
        ])
        .select([
          'lead_pipeline_stages.code as stage_code',
          'lead_pipeline_stages.name as stage_name',
          'lead_pipeline_stages.probability as stage_probability',
          'lead_pipeline_stages.sort_order as stage_sort_order',
        ])
        .$narrowType<{ source_name: string; type_name: string; pipeline_name: string; rotten_days: number }>()
        .$narrowType<{ stage_code: string; stage_name: string; stage_probability: number; stage_sort_order: number }>()
        .select(quotesCount)
        // Counts all linked activities without a visibility check, because an activity linked to a
        // visible lead is visible.
        .select(
          sql<number>`(select count(*) from lead_activities as link where link.lead_id = leads.id)`.as(
            'activities_count',
          ),
        )
        .select(sql<number>`exists (select 1 from emails where emails.lead_id = leads.id)`.as('has_emails'))
        .where(visible(ctx, 'leads.user_id')),
    idsInSight: (caller) => idsInSight(caller, 'leads'),
    sort: {
      id: 'leads.id',
      title: 'leads.title_key',
      lead_value: 'leads.lead_value',
      status: 'leads.status',
      expected_close_date: 'leads.expected_close_date',
      closed_at: 'leads.closed_at',
      stage_changed_at: 'leads.stage_changed_at',
      created_at: 'leads.created_at',
      updated_at: 'leads.updated_at',
      person_name: 'persons.name_key',
      user_name: 'users.name_key',
      stage_sort_order: 'lead_pipeline_stages.sort_order',
    },
    filter: {
      title: textField('leads.title_key'),
      status: valueField('leads.status'),
      user_id: valueField('leads.user_id'),
      person_id: valueField('leads.person_id'),
      organization_id: valueField('persons.organization_id'),
      lead_source_id: valueField('leads.lead_source_id'),
      lead_type_id: valueField('leads.lead_type_id'),
      lead_pipeline_id: valueField('leads.lead_pipeline_id'),
      lead_pipeline_stage_id: valueField('leads.lead_pipeline_stage_id'),
      stage_code: textField('lead_pipeline_stages.code'),
      tag_id: linkedField('lead_tags', 'leads.id', 'lead_id', 'tag_id'),
      import_id: importedField('leads'),
      product_id: linkedField('lead_products', 'leads.id', 'lead_id', 'product_id'),
      lead_value: moneyField('leads.lead_value'),
      // The column is a date and not a time, so its filter is `valueField`.
      expected_close_date: valueField('leads.expected_close_date'),
      closed_at: timeField('leads.closed_at'),
      stage_changed_at: timeField('leads.stage_changed_at'),
      is_rotten: rottenFilter,
    },
    related: {
      person: { entity: 'persons', column: 'leads.person_id' },
      organization: { entity: 'organizations', column: 'persons.organization_id' },
    },
    searchDocument,
    search: [
      { indexed: 'leads' },
      { key: 'leads.title_key' },
      { text: 'leads.description' },
      { key: 'persons.name_key' },
      { key: 'organizations.name_key' },
      { where: matchesPersonAddress },
    ],
    withoutColumn: { person: 'links', products: 'rows', tag_ids: 'links', email_id: 'links' },
    toRow: async (body: Body, writing) => {
      const { ctx, current, errors } = writing
      const { expected_close_date: expected, lead_source_id: source, lead_type_id: type } = body
      const isChanged = expected && expected !== current?.expected_close_date
      if (isChanged && expected < today(ctx.time, ctx.services.config.timezone))
        warn(ctx, 'expected_close_date', 'The date is in the past.')
      if (source !== current?.lead_source_id) await checkReference(writing, 'lead_source_id', source, sources)
      if (type !== current?.lead_type_id) await checkReference(writing, 'lead_type_id', type, types)
      await checkTagIds(ctx, errors, body.tag_ids)
      await checkEmail(writing, body.email_id)
      const present = current && body.products ? await loadProductLines(ctx, [current.id]) : []
      const lines = body.products && (await planProductLines(ctx, present, body.products, errors))
      const moved = await planStageChange(writing, body)
      const isWin = current && moved.status === leadStatus.won && current.status !== leadStatus.won
      if (lines) await warnOfStock(ctx, lines, (index) => `products.${index}.quantity`)
      else if (isWin) await warnOfStock(ctx, await loadProductLines(ctx, [current.id]), () => 'lead_pipeline_stage_id')
      const user_id = await resolveOwnerId(writing, body.user_id)
      const columns = {
        title: body.title,
        title_key: body.title === undefined ? undefined : textKey(body.title),
        description: body.description,
        lead_value: scaled(body.lead_value ?? (current ? undefined : 0)),
        expected_close_date: expected,
        lead_source_id: source ?? (current ? undefined : await defaultVocabularyId(ctx, 'lead_sources', 'Direct')),
        lead_type_id: type ?? (current ? undefined : await defaultVocabularyId(ctx, 'lead_types', 'New Business')),
        user_id,
        ...moved,
        // This call comes last, because it creates a new person unless an earlier check added an
        // error.
        person_id: await resolvePersonId(writing, body),
      }
      return { columns, save: lines && ((ctx, id) => saveProductLines(ctx, id, present, lines)) }
    },
    toReply: (row, ctx): Schema<'Lead'> => {
      const days = rottenDays(ctx, row)
      const lines = parseProductLines(row.lines)
      return {
        id: row.id,
        title: row.title,
        description: row.description,
        lead_value: fromScaled(row.lead_value),
        status: row.status as Schema<'Lead'>['status'],
        lost_reason: row.lost_reason,
        closed_at: row.closed_at,
        expected_close_date: row.expected_close_date,
        rotten_days: days,
        is_rotten: days > 0,
        stage_changed_at: row.stage_changed_at,
        user_id: row.user_id,
        user: userRef(row.user_id, row.user_name, row.user_email, pictureUrl(ctx, row.user_image)),
        person_id: row.person_id,
        person:
          row.person_id === null ? null : personRef(row.person_id, row.person_name ?? '', row.person_emails ?? '[]'),
        organization:
          row.organization_id === null ? null : { id: row.organization_id, name: row.organization_name ?? '' },
        lead_source_id: row.lead_source_id,
        source: { id: row.lead_source_id, name: row.source_name },
        lead_type_id: row.lead_type_id,
        type: { id: row.lead_type_id, name: row.type_name },
        lead_pipeline_id: row.lead_pipeline_id,
        pipeline: { id: row.lead_pipeline_id, name: row.pipeline_name },
        lead_pipeline_stage_id: row.lead_pipeline_stage_id,
        stage: {
          id: row.lead_pipeline_stage_id,
          code: row.stage_code,
          name: row.stage_name,
          probability: row.stage_probability,
          sort_order: row.stage_sort_order,
        },
        tags: readTags(row.tags),
        products: lines.map(presentProductLine),
        products_amount: totalOf(lines.map(({ amount }) => amount)),
        quotes_count: Number(row.quotes_count),
        activities_count: Number(row.activities_count),
        // 1 when the lead has e-mails, else 0. `countEmails` replaces a 1 with the number of
        // e-mails that the caller may see.
        emails_count: Number(row.has_emails),
        custom_attributes: {},
        external_ids: {},
        created_at: row.created_at,
        updated_at: row.updated_at,
        version: row.version,
      }
    },
    loadRelated: async (ctx, replies, include) => {
      await countEmails(ctx, replies)
      await expandReferences(ctx, replies, include, {
        user: () => users,
        person: () => persons,
        organization: () => organizations,
        source: () => sources,
        type: () => types,
        pipeline: () => pipelines,
      })
      if (include.includes('stage')) await expandStages(ctx, replies)
      if (include.includes('quotes')) await includeQuotes(ctx, replies)
    },
    followUpEvents: outcomeEvents,
    onRestore: repairLead,
    onChange: bookChange,
    saveLinks: async (ctx, id, body: Body, isNew) => {
      await setTags(ctx, 'leads', id, body.tag_ids, isNew)
      await linkEmail(ctx, body.email_id, { lead_id: id })
    },
  }),
)

/**
 * Replaces each stage reference with the complete stage, for `include=stage`. No operation returns
 * a single stage, so the stages are loaded with their pipelines.
 */
async function expandStages(ctx: Context, replies: Schema<'Lead'>[]): Promise<void> {
  if (!canCall(ctx, pipelines.getOperation)) return
  const full = await pipelines.getMany(
    ctx,
    replies.map((reply) => reply.lead_pipeline_id),
  )
  for (const reply of replies) {
    reply.stage =
      full.get(reply.lead_pipeline_id)?.stages.find(({ id }) => id === reply.lead_pipeline_stage_id) ?? reply.stage
  }
}

/**
 * Moves a lead, even one that the caller may not see, as an update with its own `lead.update`
 * events. app.ts passes this function to the pipelines, which cannot import leads.
 */
export const moveUnseenLead = async (ctx: Context, id: number, to: { stageId: number }): Promise<void> =>
  void (await leads.update(withoutVisibility(ctx), id, { lead_pipeline_stage_id: to.stageId }))
