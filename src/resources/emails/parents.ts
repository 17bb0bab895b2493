// What a received mail answers (DOMAIN 14.4): by the token in the address it was sent to, else by the ids in its headers. Never by
// its subject. Whatever the order in which they come, mails that name one another are one thread; its root is the one that came
// first. Two threads that both have mails already are never made one, whatever a third mail names.

import { constantTimeEquals } from '../../kernel/auth/secrets.ts'
import type { Context, Services } from '../../kernel/context.ts'
import type { ReceivedMail } from '../../mail/parse/parse.ts'

/** Addresses and ids that are looked at; who sends more wants to keep us busy. */
const most = 100

const tokenOf = ({ seal }: Pick<Services, 'seal'>, threadId: number): string =>
  seal.hmac(`thread:${threadId}`).slice(0, 32)

/** Where answers to a thread go. In lower case, as mail servers may write it; the thread is named so that it can be found. */
export const answerAddress = (services: Services, threadId: number): string =>
  `reply+${threadId.toString(36)}-${tokenOf(services, threadId)}@${services.config.mailDomain}`

/** The thread of an address that this installation gave out, in constant time. */
function threadOf(services: Services, address: string): number | null {
  const [, name = '', token = ''] = /^reply\+([0-9a-z]{1,10})-([0-9a-f]{32})@/i.exec(address) ?? []
  const id = Number.parseInt(name, 36)
  if (!Number.isSafeInteger(id)) return null
  return constantTimeEquals(token.toLowerCase(), tokenOf(services, id)) ? id : null
}

/** The id of the mail it answers; null when it begins a thread. */
export async function parentOf(ctx: Context, mail: ReceivedMail): Promise<number | null> {
  const candidates = [...mail.inReplyTo, ...mail.references.toReversed()].slice(0, most)
  const named = await storedOf(ctx, candidates)
  const thread = await threadOfRecipients(ctx, mail)
  // The token says which thread, the ids which mail of it.
  if (thread !== null) return named.find((each) => each.thread === thread.id)?.id ?? thread.first
  return named[0]?.id ?? sharedParent(ctx, candidates)
}

async function threadOfRecipients(
  { db, services }: Context,
  { recipients }: ReceivedMail,
): Promise<{ id: number; first: number } | null> {
  const ids = recipients.slice(0, 10 * most).flatMap((address) => threadOf(services, address) ?? [])
  for (const id of [...new Set(ids)].slice(0, most)) {
    const first = await db
      .selectFrom('emails')
      .select('id')
      .where('thread_id', '=', id)
      .orderBy('id')
      .executeTakeFirst()
    if (first) return { id, first: first.id }
  }
  return null
}

/** The stored mails with these Message-IDs, in the order of the ids. */
async function storedOf({ db }: Context, messageIds: readonly string[]): Promise<{ id: number; thread: number }[]> {
  if (messageIds.length === 0) return []
  const rows = await db
    .selectFrom('emails')
    .select(['id', 'thread_id', 'message_id'])
    .where('message_id', 'in', [...new Set(messageIds)])
    .execute()
  const found = new Map(rows.map((row) => [row.message_id, { id: row.id, thread: row.thread_id ?? row.id }]))
  return messageIds.flatMap((each) => found.get(each) ?? [])
}

/** The first mail that answers the same as this one, when what they answer never came here. */
async function sharedParent({ db }: Context, messageIds: readonly string[]): Promise<number | null> {
  if (messageIds.length === 0) return null
  const rows = await db
    .selectFrom('email_references')
    .select(({ fn }) => ['reference_id', fn.min('email_id').as('email_id')])
    .where('reference_id', 'in', [...new Set(messageIds)])
    .groupBy('reference_id')
    .execute()
  const found = new Map(rows.map((row) => [row.reference_id, Number(row.email_id)]))
  return messageIds.flatMap((each) => found.get(each) ?? [])[0] ?? null
}

/**
 * The thread of mails that came before the one they answer, such as from another folder of a mailbox. It joins them, as it is: what
 * came before does not change.
 */
export async function threadNaming({ db }: Context, messageId: string): Promise<number | null> {
  const named = await db
    .selectFrom('email_references')
    .innerJoin('emails', 'emails.id', 'email_references.email_id')
    .select('emails.thread_id')
    .where('reference_id', '=', messageId)
    .orderBy('emails.id')
    .executeTakeFirst()
  return named?.thread_id ?? null
}
