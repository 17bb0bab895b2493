// `accord inbound-emails:process`: fetches e-mails from the mailbox now, outside the schedule.
import type { Config } from '../config/config.ts'
import { pollEmails } from '../resources/emails/poll.ts'
import { CommandError } from './command-error.ts'
import { asSystem } from './context.ts'
import { type ReportOptions, report } from './report.ts'

export function processInboundCommand(config: Config, options: ReportOptions = {}): Promise<void> {
  if (config.mailReceiver !== 'webklex-imap')
    throw new CommandError(
      'MAIL_RECEIVER_DRIVER is sendgrid: a service posts e-mails to this installation, so there is no mailbox to fetch from.',
    )
  return asSystem(config, async (ctx) => {
    const { received, duplicates, left, failed, failure } = await pollEmails(ctx, new AbortController().signal)
    report(options, { received, duplicates, left, failed }, [
      `${received} received, ${duplicates} already known, ${left} left in the mailbox, ${failed} to be retried.`,
    ])
    if (failure !== null) throw new CommandError(failure)
  })
}
