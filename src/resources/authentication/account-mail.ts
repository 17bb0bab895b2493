// Sends mails of the server to the user of an account: about its password, its sign-ins and its
// work.
import { randomUUID } from 'node:crypto'
import { operations } from '../../contract/operations.gen.ts'
import type { Context } from '../../kernel/context.ts'
import { oneLine } from '../../kernel/values/format.ts'
import { mailBodies } from '../../kernel/values/mail-layout.ts'
import { MailRefused } from '../../mail/outbound.ts'
import { withGracePeriod } from '../../mail/send-grace.ts'
import type { Texts } from '../../texts/texts.ts'

export interface Recipient {
  id: number
  name: string
  email: string
}

export interface AccountMail {
  /** The local part of the Message-ID, for a mail that a later attempt may send again. */
  messageKey?: string
  subject: string
  /** The paragraphs after the greeting. A paragraph that is an URL becomes a link. */
  paragraphs: readonly string[]
  /** The texts of the installation's language; users have none of their own. */
  texts: Texts
}

/**
 * Returns the addresses of the pages for people. They use the configured URL, not the host of the
 * request, which an attacker could choose.
 */
export function pagesOf({ services: { config } }: Context): { signIn: string; resetPassword: string } {
  const base = config.appUrl ?? `http://localhost:${config.port}`
  return {
    signIn: `${base}${operations.getSession.path}`,
    resetPassword: `${base}${operations.getResetPasswordPage.path}`,
  }
}

/** Sends a mail. Throws the error of the mail server, which may contain the recipient's address. */
export async function sendAccountMail(
  { services: { mailer, clock, config } }: Context,
  { name, email }: Recipient,
  { subject, paragraphs, texts, messageKey = randomUUID() }: AccountMail,
  signal: AbortSignal,
): Promise<void> {
  const all = [texts.say('account.greeting', { name: oneLine(name) }), ...paragraphs]
  await mailer.send(
    {
      messageId: `${messageKey}@${config.mailDomain}`,
      date: clock.now(),
      from: { address: config.mailFrom, name: config.mailFromName },
      to: [email],
      cc: [],
      bcc: [],
      subject: oneLine(subject),
      ...mailBodies(all, texts),
      references: [],
      headers: { 'Auto-Submitted': 'auto-generated' },
      attachments: [],
    },
    withGracePeriod(signal),
  )
}

/**
 * Ends a job whose mail failed. Throws, so that the job tries again, unless the mail server refused
 * the mail for good. The mail server's error is not logged, because it often contains the
 * recipient's address.
 */
export function accountMailFailed({ services: { log } }: Context, user: number, cause: unknown, mail: string): void {
  if (!(cause instanceof MailRefused)) throw new Error('The mail server did not take the mail.')
  log.warn({ user }, `The mail server refused ${mail}.`)
}
