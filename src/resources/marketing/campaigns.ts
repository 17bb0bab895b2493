// The settings of campaigns. A campaign sends an e-mail to the persons of its
// audience on the date of its event. run.ts starts the runs of campaigns, and editor.ts tells whose
// rights their placeholders have.
import type { Schema } from '../../contract/types.ts'
import { type Context, now, warn } from '../../kernel/context.ts'
import { flagField, textField, valueField } from '../../kernel/query/filter.ts'
import { defineResource } from '../../kernel/resource/define-resource.ts'
import { checkReference, expandReferences } from '../../kernel/resource/references.ts'
import { oneLine } from '../../kernel/values/format.ts'
import { textKey } from '../../kernel/values/names.ts'
import { referencesInText } from '../email-templates/placeholder-references.ts'
import { emailTemplates } from '../email-templates/resource.ts'
import { changedById } from '../users/acting-user.ts'
import {
  audienceProblem,
  everyone,
  presentAudience,
  readableAudience,
  referencesInFilter,
  replacingInAudience,
  toAudienceColumns,
} from './audience.ts'
import { requireCampaignAbilities } from './editor.ts'
import { marketingEvents } from './events.ts'
import { nextDailyRun } from './occurrence.ts'
import { scheduleSending } from './sending.ts'
import { hasQueued, loadStats } from './stats.ts'

/** Warns when no daily run will send an active campaign any more. */
async function warnOfMissedDay(ctx: Context, id: number): Promise<void> {
  const row = await ctx.db
    .selectFrom('marketing_campaigns')
    .innerJoin('marketing_events', 'marketing_events.id', 'marketing_campaigns.marketing_event_id')
    .select(['marketing_events.date', 'marketing_campaigns.is_active', 'marketing_campaigns.last_run_at'])
    .where('marketing_campaigns.id', '=', id)
    .executeTakeFirst()
  if (row?.is_active !== 1 || row.last_run_at !== null || row.date === null || row.date >= nextDailyRun(ctx)) return
  const message = `The daily run of ${row.date}, the day of its event, is over. Call runCampaign to send it now.`
  warn(ctx, 'marketing_event_id', message)
}

export const campaigns = defineResource({
  noun: 'campaign',
  table: 'marketing_campaigns',
  externalIds: { table: 'campaign_external_ids', column: 'campaign_id' },
  operations: {
    list: 'listCampaigns',
    get: 'getCampaign',
    create: 'createCampaign',
    update: 'updateCampaign',
    delete: 'deleteCampaign',
  },
  rows: (_ctx, db) =>
    db
      .selectFrom('marketing_campaigns')
      .leftJoin('email_templates', 'email_templates.id', 'marketing_campaigns.email_template_id')
      .leftJoin('marketing_events', 'marketing_events.id', 'marketing_campaigns.marketing_event_id')
      .selectAll('marketing_campaigns')
      .select([
        'email_templates.name as template_name',
        'marketing_events.name as event_name',
        'marketing_events.date as event_date',
      ]),
  sort: {
    id: 'marketing_campaigns.id',
    name: 'marketing_campaigns.name_key',
    created_at: 'marketing_campaigns.created_at',
  },
  filter: {
    name: textField('marketing_campaigns.name_key'),
    is_active: flagField('marketing_campaigns.is_active'),
    marketing_event_id: valueField('marketing_campaigns.marketing_event_id'),
    email_template_id: valueField('marketing_campaigns.email_template_id'),
  },
  search: [{ key: 'marketing_campaigns.name_key' }, { text: 'marketing_campaigns.subject' }],
  withoutColumn: { audience: 'other columns' },
  toRow: async (body, writing) => {
    const { current, errors } = writing
    const { name, subject, is_active, email_template_id: template, marketing_event_id: event } = body
    if (template !== current?.email_template_id) {
      if (template === null) errors.invalid('email_template_id', 'The field is required.')
      await checkReference(writing, 'email_template_id', template, emailTemplates)
    }
    if (event !== current?.marketing_event_id)
      await checkReference(writing, 'marketing_event_id', event, marketingEvents)
    // The template of an inactive campaign may have been deleted, but an active campaign needs a
    // template.
    if (is_active === true && !template && current && current.email_template_id === null)
      errors.invalid('email_template_id', 'An active campaign needs a template.')
    const audience = await toAudienceColumns(writing, body.audience)
    if (is_active === true && !errors.any) {
      const problem = await audienceProblem(writing.ctx, presentAudience({ ...everyone, ...current, ...audience }))
      if (problem !== null) errors.invalid('audience', problem)
    }
    const columns = {
      name,
      name_key: name === undefined ? undefined : textKey(name),
      subject: oneLine(subject),
      is_active: is_active === undefined ? undefined : Number(is_active),
      ...(is_active === true && current?.is_active !== 1 && { active_since: now(writing.ctx) }),
      email_template_id: template,
      marketing_event_id: event,
      ...audience,
    }
    const changer = changedById(writing.ctx, columns, current)
    if (changer !== undefined && !errors.any) requireCampaignAbilities(writing.ctx)
    return {
      columns: { ...columns, changed_by_id: changer },
      save: async (ctx, id) => {
        // Resumes sending after activation, because e-mails may have been queued before the
        // campaign was deactivated.
        if (is_active === true && (await hasQueued(ctx, id))) await scheduleSending(ctx)
        await warnOfMissedDay(ctx, id)
      },
    }
  },
  refersTo: async (ctx, { subject, audience_filter }) => [
    ...(await referencesInText(ctx, 'subject', subject)),
    ...(await referencesInFilter(ctx, audience_filter)),
  ],
  replacing: async (ctx, row, named, by) => ({ audience: await replacingInAudience(ctx, row, named, by) }),
  toReply: (row, ctx): Schema<'Campaign'> => ({
    id: row.id,
    name: row.name,
    subject: row.subject,
    is_active: row.is_active === 1,
    email_template_id: row.email_template_id,
    email_template:
      row.email_template_id === null ? null : { id: row.email_template_id, name: row.template_name ?? '' },
    marketing_event_id: row.marketing_event_id,
    marketing_event:
      row.marketing_event_id === null
        ? null
        : { id: row.marketing_event_id, name: row.event_name ?? '', date: row.event_date },
    audience: readableAudience(ctx, presentAudience(row)),
    stats: { queued: 0, sending: 0, sent: 0, failed: 0, suppressed: 0, uncertain: 0, last_run_at: row.last_run_at },
    external_ids: {},
    created_at: row.created_at,
    updated_at: row.updated_at,
    version: row.version,
  }),
  // The log holds the filter and the numbers that the user of the event saw.
  asRead: (ctx, { stats, ...snapshot }) => {
    const isLimited = (ctx.user?.visibleOwners ?? null) !== null
    const audience = snapshot.audience as Schema<'CampaignAudience'> | undefined
    return {
      ...snapshot,
      ...(audience && { audience: readableAudience(ctx, audience) }),
      ...(stats !== undefined && !isLimited && { stats }),
    }
  },
  loadRelated: async (ctx, replies, include) => {
    await loadStats(ctx, replies)
    await expandReferences(ctx, replies, include, {
      email_template: () => emailTemplates,
      marketing_event: () => marketingEvents,
    })
  },
})
