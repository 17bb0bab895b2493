// Records the answers of participants to invitations. The activities define the job, because
// participants belong to them.
import { enqueue } from '../../jobs/queue.ts'
import type { Context } from '../../kernel/context.ts'
import { fold } from '../../kernel/values/format.ts'
import type { InvitationAnswer, ReceivedMail } from '../../mail/parse/parse.ts'

/** The job kind; activities/invitation-answers.ts defines the job itself. */
export const answerKind = { kind: 'emails.invitation_answers' }

export interface AnswersPayload {
  answers: InvitationAnswer[]
}

/**
 * Queues the answers of the author of the e-mail, for the own address alone. The Sender header and
 * further authors do not count, because DMARC proves only the domain of a single author.
 */
export async function queueAnswers(
  ctx: Context,
  { answers, authors }: Pick<ReceivedMail, 'answers' | 'authors'>,
): Promise<void> {
  const [author = '', ...others] = authors.map(fold)
  const own = others.length > 0 ? [] : answers.filter(({ address }) => fold(address) === author)
  if (own.length > 0) await enqueue(ctx, answerKind, { answers: own } satisfies AnswersPayload)
}
