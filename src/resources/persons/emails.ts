// Links a new record to the e-mail from which it is created (`email_id`), and
// counts the e-mails of leads. The e-mails slice imports persons. To avoid a circular import, this
// file gets the e-mails resource from the services.
import { sql } from 'kysely'
import { assertCanCall, type Context } from '../../kernel/context.ts'
import { pruneJoins } from '../../kernel/query/join-pruning.ts'
import type { Rows } from '../../kernel/query/page.ts'
import { queryByIds } from '../../kernel/query/statement-cache.ts'
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
  const counted = async (ids: readonly number[]) => {
    const rows: Rows<unknown> = (await emailsOf(ctx).query(ctx, {})).clearSelect().clearOrderBy()
    return rows
      .select(['emails.lead_id as lead', sql<number>`count(*)`.as('count')])
      .where('emails.lead_id', 'in', ids)
      .groupBy('emails.lead_id')
  }
  const ids = leads.flatMap(({ id, emails_count }) => (emails_count > 0 ? [id] : []))
  const counts = await queryByIds<{ lead: number; count: number }>(ctx, 'emails of leads', ids, async (ids) =>
    pruneJoins(await counted(ids)),
  )
  for (const lead of leads) lead.emails_count = Number(counts.find((each) => each.lead === lead.id)?.count ?? 0)
}
