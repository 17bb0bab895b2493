// `accord campaign:process` queues the e-mails of campaigns, and `accord inbound-emails:process`
// fetches those of the mailbox now, outside their schedules.
import type { Config } from '../config/config.ts'
import { canonicalDate } from '../contract/input/formats.ts'
import { today } from '../kernel/values/format.ts'
import { pollEmails } from '../resources/emails/poll.ts'
import { processNow } from '../resources/marketing/run.ts'
import { CommandError } from './command-error.ts'
import { asSystem } from './context.ts'
import { counted, type ReportOptions, report } from './report.ts'

export function processCampaignsCommand(
  config: Config,
  { date, ...options }: { date?: string } & ReportOptions,
): Promise<void> {
  if (date !== undefined && canonicalDate(date, 'utc') !== date)
    throw new CommandError(`--date must be a day as YYYY-MM-DD, not "${date}".`)
  return asSystem(config, async (ctx) => {
    const day = date ?? today(ctx.time, config.timezone)
    const { runs, queued, suppressed } = await processNow(ctx, day)
    const rest = `${suppressed} suppressed`
    report(options, { date: day, campaigns: runs, queued, suppressed }, [
      `${day}: ${counted(runs, 'campaign')}, ${counted(queued, 'e-mail')} queued, ${rest}.`,
      ...(queued > 0 && !ctx.services.mailer.isConfigured
        ? ['They stay queued, because no server for outgoing e-mail is set (ACCORD_SMTP_URL).']
        : []),
    ])
  })
}

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
