// Builds the e-mail of a campaign for one person: fills in the placeholders of
// the subject and the template, sanitizes the HTML, and appends an unsubscribe link unless the
// content already contains one.
import type { Context } from '../../kernel/context.ts'
import { escapeHtml } from '../../kernel/values/format.ts'
import { clean, tooMuch } from '../../kernel/values/html.ts'
import { plainText } from '../../kernel/values/plain-text.ts'
import type { Texts } from '../../texts/texts.ts'
import { fillIn, maxFilledLength, type Placeholders } from '../email-templates/placeholders.ts'

/** The subject of a campaign and the content of its template, before placeholders are filled in. */
export interface CampaignDraft {
  subject: string
  content: string
}

export interface FilledCampaign extends CampaignDraft {
  unknown: string[]
}

/**
 * Returns the subject of the campaign, the content of its template, and the user whose rights the
 * placeholders have. Returns null when the
 * campaign or the template has been deleted.
 */
export async function draftOf(
  { db }: Context,
  id: number,
): Promise<(CampaignDraft & { changed_by_id: number | null }) | null> {
  const row = await db
    .selectFrom('marketing_campaigns')
    .innerJoin('email_templates', 'email_templates.id', 'marketing_campaigns.email_template_id')
    .select(['marketing_campaigns.subject', 'email_templates.content', 'marketing_campaigns.changed_by_id'])
    .where('marketing_campaigns.id', '=', id)
    .executeTakeFirst()
  return row ?? null
}

/**
 * Returns the filled e-mail, or an error message when the subject or the content becomes too long.
 * `url` is the unsubscribe link, and `texts` has the language of the person.
 */
export function fillCampaign(
  ctx: Context,
  draft: CampaignDraft,
  facts: Placeholders,
  { url, texts }: { url: string; texts: Texts },
): FilledCampaign | string {
  const values = new Map([...facts, ['unsubscribe_url', url]])
  const subject = fillIn(draft.subject, values, 'text', maxFilledLength.subject)
  if (!subject)
    return `With its placeholders filled in, the subject has more than ${maxFilledLength.subject} characters.`
  const content = fillIn(draft.content, values, 'html', maxFilledLength.content)
  const cleaned = content && clean(content.filled)
  if (!content || typeof cleaned !== 'string') return `The content is too long once it is filled in. ${tooMuch}`
  return {
    subject: subject.filled,
    content: cleaned.includes(escapeHtml(url)) ? cleaned : cleaned + footer(ctx, url, texts),
    unknown: [...new Set([...subject.unknown, ...content.unknown])],
  }
}

const footer = ({ services: { config } }: Context, url: string, { say, direction }: Texts): string =>
  `<p style="font-size:small" dir="${direction}">${escapeHtml(say('unsubscribe.footer', { app: config.appName }))} <a href="${escapeHtml(url)}" rel="noopener noreferrer" target="_blank">${escapeHtml(say('unsubscribe.title'))}</a></p>`

/** Returns the plain-text version of an e-mail, followed by the unsubscribe link. */
export const campaignText = (content: string, url: string, { say }: Texts): string =>
  `${plainText(content)}\n\n${say('unsubscribe.title')}: ${url}`
