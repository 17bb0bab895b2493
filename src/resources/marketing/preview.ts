// Previews a campaign. Returns the e-mail for one person visible to the caller. Also
// returns the number of addresses that the next run would reach.
import type { Schema } from '../../contract/types.ts'
import { type Context, canCall } from '../../kernel/context.ts'
import { invalid } from '../../kernel/errors.ts'
import type { Handler } from '../../kernel/handler.ts'
import { visible } from '../../kernel/query/visibility.ts'
import { placeholdersFrom, placeholdersOf } from '../email-templates/placeholder-values.ts'
import { emailTemplates } from '../email-templates/resource.ts'
import { textsOfPerson } from '../persons/language.ts'
import { persons } from '../persons/resource.ts'
import { countAudience } from './audience-size.ts'
import { campaigns } from './campaigns.ts'
import { type FilledCampaign, fillCampaign } from './content.ts'
import { nextDailyRun } from './occurrence.ts'
import { exampleUrl } from './unsubscribe.ts'

export const previewCampaign: Handler<'previewCampaign'> = async (ctx, { params, query }) => {
  const campaign = await campaigns.get(ctx, params.id)
  const personId = await examplePerson(ctx, query.person_id, 'query.person_id')
  const filled = await fillForPerson(ctx, campaign, personId)
  if (typeof filled === 'string') throw invalid({ 'query.person_id': [filled] })
  const { reachable, suppressed, not_subscribed, already_sent, without_address, is_complete } = await countAudience(
    ctx,
    campaign,
  )
  return {
    data: {
      subject: filled.subject,
      content: filled.content,
      person_id: personId,
      recipients: reachable,
      suppressed,
      not_subscribed,
      already_sent,
      without_address,
      is_complete,
      next_run: nextRun(ctx, campaign),
      unknown_placeholders: filled.unknown,
    },
  }
}

/**
 * Fills in the campaign with the values of a person, or with no values if `personId` is null.
 * Returns an error message when the result is too long. The unsubscribe link is an example without
 * effect.
 */
export async function fillForPerson(
  ctx: Context,
  { subject, email_template_id: templateId }: Schema<'Campaign'>,
  personId: number | null,
): Promise<FilledCampaign | string> {
  const texts = await textsOfPerson(ctx, personId)
  const template = templateId === null ? null : await emailTemplates.get(ctx, templateId)
  const facts =
    personId === null
      ? await placeholdersFrom(ctx, 'persons', {}, texts)
      : await placeholdersOf(ctx, 'persons', personId, texts)
  return fillCampaign(ctx, { subject, content: template?.content ?? '' }, facts, { url: exampleUrl(ctx), texts })
}

/**
 * Returns the id of the person whose values a preview uses: the given id, or else the first visible
 * person with an e-mail address. Returns null when there is no such person or the caller may not
 * read persons. Throws 422 on `field` for an unknown or invisible id.
 */
export async function examplePerson(ctx: Context, id: number | undefined, field: string): Promise<number | null> {
  const mayRead = canCall(ctx, persons.getOperation)
  if (id !== undefined) {
    if (!mayRead || !(await persons.visibleIds(ctx, [id])).has(id))
      throw invalid({ [field]: [`No person has id ${id}.`] })
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
 * Returns the next day (YYYY-MM-DD) on which the daily run includes the campaign. Returns null when
 * the campaign is inactive, has no template, or the day of its event is over.
 */
function nextRun(ctx: Context, campaign: Schema<'Campaign'>): string | null {
  if (!campaign.is_active || campaign.email_template_id === null) return null
  const next = nextDailyRun(ctx)
  const date = campaign.marketing_event?.date ?? null
  return date === null ? next : date >= next ? date : null
}
