// The checks of `accord doctor` that concern e-mail: the SMTP server for outgoing mail, and the
// mailbox that is polled.
import type { Config } from '../../config/config.ts'
import { presentSecret } from '../../installation/data-folder.ts'
import { createMailer } from '../../mail/outbound.ts'
import type { CheckResult } from './check-result.ts'

/**
 * Checks the server for outgoing mail. An unset ACCORD_SMTP_URL is not a problem, because e-mails
 * then stay queued.
 */
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

/**
 * The second highest UID of IMAP. The poll fetches only messages with a higher UID, so it fetches
 * none. `lastUid + 1` must be a valid UID, because the poll searches from there.
 */
const lastUid = 0xfffffffe

/** Signs in to the mailbox and opens its folders. Fetches no message. */
export async function checkMailbox(config: Config): Promise<CheckResult> {
  if (config.mailReceiver !== 'webklex-imap') return null
  if (presentSecret(config) === null) return 'cannot be checked without the secret.'
  // Imported only here, because these modules load the whole application and most installations
  // poll no mailbox.
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
      async () => ({ uid: lastUid }),
      () => Promise.resolve(),
      { timeoutMs: 5000 },
    )
    return null
  } catch (cause) {
    if (!(cause instanceof MailboxFailed)) throw cause
    return `${cause.message} See ACCORD_IMAP_HOST and the configuration email.imap.account.`
  }
}
