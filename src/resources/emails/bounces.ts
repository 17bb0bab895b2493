// Records bounces. The job stores the reason at the sent e-mail or at the entry of the campaign,
// and suppresses the address. The slice marketing defines it, because suppressions belong there.
import { enqueue } from '../../jobs/queue.ts'
import type { Context } from '../../kernel/context.ts'
import type { Bounce } from '../../mail/parse/parse.ts'

/** The job kind; marketing/bounces.ts defines the job itself. */
export const bounceKind = { kind: 'emails.bounce' }

export async function queueBounce(ctx: Context, bounce: Bounce | null): Promise<void> {
  if (bounce && bounce.messageIds.length > 0) await enqueue(ctx, bounceKind, bounce)
}
