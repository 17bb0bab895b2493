// `accord inbound-emails:process`: fetches the mails of the mailbox now, whatever the schedule says.
import type { Config } from '../config/config.ts'
import { poll } from '../resources/emails/poll.ts'
import { CommandError } from './command-error.ts'
import { asSystem } from './context.ts'

export function processInboundCommand(config: Config): Promise<void> {
  if (config.mailReceiver !== 'webklex-imap')
    throw new CommandError(
      'Mail is posted to this installation; it fetches none while MAIL_RECEIVER_DRIVER is sendgrid.',
    )
  return asSystem(config, async (ctx) => {
    const { received, duplicates, left, failed, failure } = await poll(ctx, new AbortController().signal)
    console.log(
      `${received} received, ${duplicates} known before, ${left} left in the mailbox, ${failed} to be tried again.`,
    )
    if (failure !== null) throw new CommandError(failure)
  })
}
