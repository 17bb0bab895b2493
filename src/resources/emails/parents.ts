// Finds the e-mail that a received e-mail replies to. The search uses the token in
// the recipient address, or else the Message-IDs in the headers, but never the subject. A reply may
// also arrive before the e-mail that it replies to. Two existing threads are never merged.

import { constantTimeEquals } from '../../kernel/auth/secrets.ts'
import type { Context, Services } from '../../kernel/context.ts'
import type { ReceivedMail } from '../../mail/parse/parse.ts'

/**
 * The maximum number of addresses and Message-IDs to check per e-mail. An e-mail with more is
 * probably an attack.
 */
const maxCandidates = 100

const tokenOf = ({ encryption }: Pick<Services, 'encryption'>, threadId: number): string =>
  encryption.hmac(`thread:${threadId}`).slice(0, 32)

/**
 * Returns the reply address of a thread, in lower case because mail servers may change the case.
 */
export const answerAddress = (services: Services, threadId: number): string =>
  `reply+${threadId.toString(36)}-${tokenOf(services, threadId)}@${services.config.mailDomain}`

/**
 * Returns the thread id in a reply address, or null when its token is wrong. Compares tokens in
 * constant time.
 */
function threadOf(services: Services, address: string): number | null {
  const [, name = '', token = ''] = /^reply\+([0-9a-z]{1,10})-([0-9a-f]{32})@/i.exec(address) ?? []
  const id = Number.parseInt(name, 36)
  if (!Number.isSafeInteger(id)) return null
  return constantTimeEquals(token.toLowerCase(), tokenOf(services, id)) ? id : null
}

/**
 * Returns the id of the e-mail that this e-mail replies to, or null when this e-mail starts a
 * thread.
 */
export async function findParent(ctx: Context, mail: ReceivedMail): Promise<number | null> {
  const candidates = [...mail.inReplyTo, ...mail.references.toReversed(), ...mail.reportsOn].slice(0, maxCandidates)
  const named = await findByMessageIds(ctx, candidates)
  const thread = await threadOfRecipients(ctx, mail)
  // The token identifies the thread; the Message-IDs identify the e-mail within the thread.
  if (thread !== null) return named.find((each) => each.thread === thread.id)?.id ?? thread.first
  return named[0]?.id ?? sharedParent(ctx, candidates)
}

async function threadOfRecipients(
  { db, services }: Context,
  { recipients }: ReceivedMail,
): Promise<{ id: number; first: number } | null> {
  const ids = recipients.slice(0, 10 * maxCandidates).flatMap((address) => threadOf(services, address) ?? [])
  for (const id of [...new Set(ids)].slice(0, maxCandidates)) {
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

/** Returns the stored e-mails with these Message-IDs, in the order of the argument. */
async function findByMessageIds(
  { db }: Context,
  messageIds: readonly string[],
): Promise<{ id: number; thread: number }[]> {
  if (messageIds.length === 0) return []
  const rows = await db
    .selectFrom('emails')
    .select(['id', 'thread_id', 'message_id'])
    .where('message_id', 'in', [...new Set(messageIds)])
    .execute()
  const found = new Map(rows.map((row) => [row.message_id, { id: row.id, thread: row.thread_id ?? row.id }]))
  return messageIds.flatMap((each) => found.get(each) ?? [])
}

/**
 * Returns the id of the oldest stored e-mail that refers to one of these Message-IDs, or null. Both
 * e-mails then reply to the same e-mail, which was never received.
 */
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
 * Returns the thread of a stored e-mail that refers to this Message-ID, or null. Such a thread
 * exists when a reply arrived before the e-mail that it replies to. The late e-mail joins the
 * thread; stored e-mails do not change.
 */
export async function findThreadNaming({ db }: Context, messageId: string): Promise<number | null> {
  const named = await db
    .selectFrom('email_references')
    .innerJoin('emails', 'emails.id', 'email_references.email_id')
    .select('emails.thread_id')
    .where('reference_id', '=', messageId)
    .orderBy('emails.id')
    .executeTakeFirst()
  return named?.thread_id ?? null
}
