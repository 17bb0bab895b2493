// What the doctor asks of mail: whether it goes out, and whether the mailbox that is polled lets us in.
import type { Config } from '../../config/config.ts'
import { presentSecret } from '../../installation/data-folder.ts'
import { systemClock } from '../../kernel/runtime/clock.ts'
import { createMailer } from '../../mail/outbound.ts'
import type { CheckResult } from './check-result.ts'

/** Without a server for it nothing is wrong: mails wait. */
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

/** A server numbers its messages no higher, so none is above it. */
const lastUid = 0xfffffffe

/** Signs in and looks into the folders, and fetches nothing. */
export async function checkMailbox(config: Config): Promise<CheckResult> {
  if (config.mailReceiver !== 'webklex-imap') return null
  if (presentSecret(config) === null) return 'cannot be looked at without the secret.'
  // The whole application is loaded for nobody who polls no mailbox.
  const [{ asSystem }, { mailboxOf }, { MailboxFailed, pollMailbox }] = await Promise.all([
    import('../context.ts'),
    import('../../resources/configuration/mailbox.ts'),
    import('../../mail/imap.ts'),
  ])
  const settings = await asSystem(config, mailboxOf)
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
