// Assigns e-mails to threads. A reply inherits thread, references, person and lead
// from the e-mail that it replies to. Subjects are not compared.
import { v7 } from 'uuid'
import type { Context } from '../../kernel/context.ts'
import { cutText } from '../../mail/cut-text.ts'

const maxReferences = 50
const maxSubjectLength = 998

/** Returns a new unique Message-ID, without angle brackets. */
export const newMessageId = ({ services, time }: Context): string =>
  `${v7({ msecs: time.getTime() })}@${services.config.mailDomain}`

/**
 * Returns the values that a reply inherits from its parent e-mail. Person and lead come from the
 * first e-mail of the thread if the parent has none.
 */
export async function inheritFrom({ db }: Context, parentId: number) {
  const parent = await db
    .selectFrom('emails')
    .leftJoin('emails as root', 'root.id', 'emails.thread_id')
    .select(['emails.subject', 'emails.person_id', 'emails.lead_id'])
    .select(['root.person_id as root_person_id', 'root.lead_id as root_lead_id'])
    .where('emails.id', '=', parentId)
    .executeTakeFirst()
  return {
    subject: replySubject(parent?.subject ?? null),
    person_id: parent?.person_id ?? parent?.root_person_id ?? null,
    lead_id: parent?.lead_id ?? parent?.root_lead_id ?? null,
  }
}

/**
 * Returns the recipients of an answer: the Reply-To addresses of the e-mail, or else its authors.
 * An e-mail of this installation is answered to its recipients.
 */
export async function answerRecipients({ db }: Context, parentId: number): Promise<string[]> {
  const parent = await db
    .selectFrom('emails')
    .select(['from', 'to', 'reply_addresses', 'sender_type'])
    .where('id', '=', parentId)
    .executeTakeFirst()
  const lists = parent?.sender_type === 'user' ? [parent.to] : [parent?.reply_addresses, parent?.from]
  return lists.map((list) => JSON.parse(list ?? '[]') as string[]).find((list) => list.length > 0) ?? []
}

function replySubject(subject: string | null): string | null {
  if (subject === null || /^re:/i.test(subject)) return subject
  return cutText(`Re: ${subject}`, maxSubjectLength)
}

/**
 * Puts a new e-mail into the thread of its parent, else into `thread`, else into a new thread. Also
 * stores the references of the e-mail: `sent`, or else the references of its parent.
 */
export async function joinThread(
  ctx: Context,
  id: number,
  { sent = [], thread = null }: { sent?: readonly string[]; thread?: number | null } = {},
): Promise<void> {
  const { db } = ctx
  const mail = await db
    .selectFrom('emails')
    .leftJoin('emails as parent', 'parent.id', 'emails.parent_id')
    .select(['emails.message_id', 'emails.parent_id', 'emails.thread_id', 'parent.thread_id as parent_thread'])
    .where('emails.id', '=', id)
    .executeTakeFirstOrThrow()
  if (mail.thread_id !== null) return
  const chain = sent.length > 0 ? sent : await chainOf(ctx, mail.parent_id)
  await db
    .insertInto('email_references')
    .values(
      withOwn(chain, mail.message_id).map((reference, position) => ({
        email_id: id,
        reference_id: reference,
        position,
      })),
    )
    .execute()
  await db
    .updateTable('emails')
    .set({ thread_id: mail.parent_thread ?? thread ?? id })
    .where('id', '=', id)
    .execute()
}

const chainOf = async (ctx: Context, parentId: number | null): Promise<string[]> =>
  parentId === null ? [] : ((await referencesOf(ctx, [parentId])).get(parentId) ?? [])

/**
 * Returns the references with `own` at the end. A list that is too long keeps its first and its
 * last references.
 */
function withOwn(chain: readonly string[], own: string): string[] {
  const ids = [...new Set(chain.filter((each) => each !== own)), own]
  return ids.length > maxReferences ? [...ids.slice(0, 1), ...ids.slice(1 - maxReferences)] : ids
}

export async function referencesOf({ db }: Context, ids: readonly number[]): Promise<Map<number, string[]>> {
  const rows = await db
    .selectFrom('email_references')
    .select(['email_id', 'reference_id'])
    .where('email_id', 'in', ids)
    .orderBy('email_id')
    .orderBy('position')
    .execute()
  const found = new Map<number, string[]>()
  for (const row of rows) found.set(row.email_id, [...(found.get(row.email_id) ?? []), row.reference_id])
  return found
}
