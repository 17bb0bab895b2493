// Links a new record to the e-mail from which it is created (`email_id`), and
// counts the e-mails of leads. The e-mails slice imports persons. To avoid a circular import, this
// file gets the e-mails resource from the services.
import { assertCanCall, type Context } from '../../kernel/context.ts'
import type { Resource, Writing } from '../../kernel/resource/define-resource.ts'

export type Link = { lead_id: number } | { person_id: number }

function emailsOf({ services }: Context): Resource<unknown, Link> {
  const emails = services.resources.get('emails')
  if (!emails) throw new Error('The resource emails is not registered.')
  return emails as Resource<unknown, unknown>
}

/**
 * Adds an error when the e-mail does not exist or is not visible to the caller. Throws 403 when the
 * caller may not change e-mails, because the link changes the e-mail.
 */
export async function checkEmail({ ctx, errors }: Writing<unknown>, id: number | undefined): Promise<void> {
  if (id === undefined) return
  if ((await emailsOf(ctx).visibleIds(ctx, [id])).has(id)) assertCanCall(ctx, 'updateEmail')
  else errors.invalid('email_id', `No e-mail has id ${id}.`)
}

/**
 * Links the e-mail to the new lead or person. The link is an update of the e-mail with the usual
 * events.
 */
export async function linkEmail(ctx: Context, id: number | undefined, link: Link): Promise<void> {
  if (id !== undefined) await emailsOf(ctx).update({ ...ctx, ifMatch: null }, id, link)
}

/**
 * Sets `emails_count` of a page of leads to the number of e-mails visible to the caller, with one
 * query. Leads whose stored `emails_count` is 0 are skipped.
 */
export async function countEmails(ctx: Context, leads: { id: number; emails_count: number }[]): Promise<void> {
  const ids = leads.flatMap(({ id, emails_count }) => (emails_count > 0 ? [id] : []))
  const counts = await emailsOf(ctx).countBy(ctx, 'emails.lead_id', ids)
  for (const lead of leads) lead.emails_count = counts.get(lead.id) ?? 0
}
