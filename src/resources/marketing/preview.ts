// Previews a campaign (DOMAIN 20.2). Returns the e-mail for one person visible to the caller. Also
// returns the number of addresses that the next run would reach among all persons.
import { DateTime } from 'luxon'
import type { Schema } from '../../contract/types.ts'
import { lastDue } from '../../jobs/schedules.ts'
import { type Context, canCall } from '../../kernel/context.ts'
import { invalid } from '../../kernel/errors.ts'
import type { Handler } from '../../kernel/handler.ts'
import { visible } from '../../kernel/query/visibility.ts'
import { yieldToEventLoop } from '../../kernel/runtime/cooperative.ts'
import { today } from '../../kernel/values/format.ts'
import { placeholdersFrom, placeholdersOf } from '../email-templates/placeholder-values.ts'
import { emailTemplates } from '../email-templates/resource.ts'
import { persons } from '../persons/resource.ts'
import { campaigns } from './campaigns.ts'
import { fillCampaign } from './content.ts'
import { occurrenceOf } from './occurrence.ts'
import { addressesIn, addressesInLedger } from './queue.ts'
import { suppressedAddresses } from './suppressions.ts'
import { exampleUrl } from './unsubscribe.ts'

/** The time of day at which campaigns run, HH:MM in the installation's time zone. */
export const dailyAt = '00:05'

/** The number of persons that one query reads. */
const atOnce = 200

export const previewCampaign: Handler<'previewCampaign'> = async (ctx, { params, query }) => {
  const campaign = await campaigns.get(ctx, params.id)
  const personId = await personOf(ctx, query.person_id)
  const templateId = campaign.marketing_template_id
  const template = templateId === null ? null : await emailTemplates.get(ctx, templateId)
  const facts =
    personId === null ? await placeholdersFrom(ctx, 'persons', {}) : await placeholdersOf(ctx, 'persons', personId)
  const draft = { subject: campaign.subject, content: template?.content ?? '' }
  const filled = fillCampaign(ctx, draft, facts, exampleUrl(ctx))
  if (typeof filled === 'string') throw invalid({ 'query.person_id': [filled] })
  return {
    data: {
      subject: filled.subject,
      content: filled.content,
      person_id: personId,
      ...(await reach(ctx, params.id, occurrenceOf(campaign.marketing_event?.date))),
      next_run: nextRun(ctx, campaign),
      unknown_placeholders: filled.unknown,
    },
  }
}

/**
 * Returns the id of the person for the preview: the given id, else the first visible person with an
 * e-mail address. Returns null when there is no such person or the caller may not read persons.
 * Throws 422 for an unknown or invisible id.
 */
async function personOf(ctx: Context, id: number | undefined): Promise<number | null> {
  const mayRead = canCall(ctx, persons.getOperation)
  if (id !== undefined) {
    if (!mayRead || !(await persons.visibleIds(ctx, [id])).has(id))
      throw invalid({ 'query.person_id': [`No person has id ${id}.`] })
    return id
  }
  if (!mayRead) return null
  const first = await ctx.db
    .selectFrom('persons')
    .select('id')
    .where((eb) => eb(eb.cast('emails', 'text'), '<>', '[]'))
    .where(visible(ctx, 'persons.user_id'))
    .orderBy('id')
    .limit(1)
    .executeTakeFirst()
  return first?.id ?? null
}

/**
 * Counts how many addresses the next run would reach and how many it would skip, for each reason.
 * Reads all persons in batches, and yields to other requests between batches.
 */
async function reach(ctx: Context, id: number, occurrence: string) {
  const counts = { recipients: 0, suppressed: 0, already_sent: 0, without_address: 0 }
  const counted = new Set<string>()
  for (let after = 0; ; await yieldToEventLoop()) {
    const people = await ctx.db
      .selectFrom('persons')
      .select(['id', 'emails'])
      .where('id', '>', after)
      .orderBy('id')
      .limit(atOnce)
      .execute()
    const last = people.at(-1)
    if (!last) return counts
    after = last.id
    counts.without_address += people.filter(({ emails }) => emails === '[]').length
    const addresses = [...new Set(people.flatMap(({ emails }) => addressesIn(emails)))].filter(
      (each) => !counted.has(each),
    )
    const had = await addressesInLedger(ctx, { campaign_id: id, occurrence }, addresses)
    const none = await suppressedAddresses(ctx, addresses)
    for (const address of addresses) {
      counted.add(address)
      if (had.has(address)) counts.already_sent++
      else if (none.has(address)) counts.suppressed++
      else counts.recipients++
    }
  }
}

/**
 * Returns the next day (YYYY-MM-DD) on which the daily run includes the campaign. Returns null when
 * the campaign is inactive, has no template, or is past its day.
 */
function nextRun(ctx: Context, campaign: Schema<'Campaign'>): string | null {
  if (!campaign.status || campaign.marketing_template_id === null) return null
  const { timezone } = ctx.services.config
  const day = today(ctx.time, timezone)
  const isDone = today(lastDue({ at: dailyAt }, ctx.time, timezone), timezone) === day
  const next = isDone ? DateTime.fromISO(day).plus({ days: 1 }).toFormat('yyyy-MM-dd') : day
  const date = campaign.marketing_event?.date ?? null
  return date === null ? next : date >= next ? date : null
}
