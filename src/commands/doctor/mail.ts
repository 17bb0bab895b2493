// The doctor's checks of e-mail: the server for outgoing mail and the mailbox that is polled.
import type { Config } from '../../config/config.ts'
import { presentSecret } from '../../installation/data-folder.ts'
import { systemClock } from '../../kernel/runtime/clock.ts'
import { createMailer } from '../../mail/outbound.ts'
import type { CheckResult } from './check-result.ts'

/** Having no server is not a problem: e-mails stay queued. */
export async function checkOutgoingMail({ smtpUrl, mailDomain }: Config): Promise<CheckResult> {
  if (smtpUrl === null) return null
  const mailer = createMailer({ url: smtpUrl, domain: mailDomain })
  try {
    const problem = await mailer.check()
    return problem === null ? null : `${problem} See ACCORD_SMTP_URL.`
  } finally {
    mailer.close()
  }
}

/** The highest UID of IMAP: the poll finds no message above it, so it fetches none. */
const lastUid = 0xfffffffe

/** Signs in and opens the folders, but fetches no message. */
export async function checkMailbox(config: Config): Promise<CheckResult> {
  if (config.mailReceiver !== 'webklex-imap') return null
  if (presentSecret(config) === null) return 'cannot be checked without the secret.'
  // Imported here because most installations poll no mailbox, and this loads the whole application.
  const [{ asSystem }, { configuredMailbox }, { MailboxFailed, pollMailbox }] = await Promise.all([
    import('../context.ts'),
    import('../../resources/configuration/mailbox.ts'),
    import('../../mail/imap.ts'),
  ])
  const settings = await asSystem(config, configuredMailbox)
  if (typeof settings === 'string') return `${settings} See ACCORD_IMAP_HOST and the configuration email.imap.account.`
  try {
    await pollMailbox(
      settings,
      async () => lastUid,
      () => Promise.resolve(),
      { now: systemClock.now(), timeoutMs: 5000 },
    )
    return null
  } catch (cause) {
    if (!(cause instanceof MailboxFailed)) throw cause
    return `${cause.message} See ACCORD_IMAP_HOST and the configuration email.imap.account.`
  }
}
