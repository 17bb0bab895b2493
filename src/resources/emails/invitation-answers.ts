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

/** Queues the answers of the authors of the e-mail. An author answers only for the own address. */
export async function queueAnswers(
  ctx: Context,
  { answers, authors, sender }: Pick<ReceivedMail, 'answers' | 'authors' | 'sender'>,
): Promise<void> {
  const writers = new Set([...authors, ...sender].map(fold))
  const own = answers.filter(({ address }) => writers.has(fold(address)))
  if (own.length > 0) await enqueue(ctx, answerKind, { answers: own } satisfies AnswersPayload)
}
