// Sends e-mails over SMTP (smtp.ts) or into a folder. One call sends at most one copy: an e-mail
// that was handed over is not sent again automatically. A failure is permanent (MailRefused) or
// temporary (MailDeferred).
import { MailDeferred } from './failures.ts'
import { folderMailer } from './folder-mailer.ts'
import type { Mailer, MailTimeouts } from './mailer.ts'

export { MailDeferred, MailRefused } from './failures.ts'
export type { Mailer, MailTimeouts, SentMail } from './mailer.ts'
export type { OutboundAttachment, OutboundMessage } from './message.ts'

export interface MailerSettings {
  /**
   * `smtp://user:pass@host:port`, `smtps://…` (with options of nodemailer in the query, such as
   * `?requireTLS=true`), `file:<folder>` for a folder of .eml files, or null.
   */
  url: string | null
  /** The host name sent in the SMTP greeting (EHLO). */
  domain: string
  timeouts?: MailTimeouts
}

/**
 * Returns the mailer for the URL in the settings. Throws an Error with a sentence for users when
 * the URL has none of the forms that `MailerSettings` allows.
 */
export function createMailer({ url, domain, timeouts = {} }: MailerSettings): Mailer {
  if (url === null) return unconfiguredMailer
  if (/^file:/i.test(url)) return folderMailer(url)
  if (!/^smtps?:\/\//i.test(url) || !URL.canParse(url) || new URL(url).hostname === '')
    throw new Error(
      'The address for outgoing mail must start with smtp://, smtps:// or file: and name a host or a folder.',
    )
  return lazySmtpMailer(url, domain, timeouts)
}

const missing = 'No server for outgoing mail is set.'
const unconfiguredMailer: Mailer = {
  isConfigured: false,
  check: async () => missing,
  send: () => Promise.reject(new MailDeferred(missing)),
  close: () => undefined,
}

/** Returns a mailer that imports nodemailer with the first e-mail or check. */
function lazySmtpMailer(url: string, domain: string, timeouts: MailTimeouts): Mailer {
  let made: Promise<Mailer> | undefined
  const mailer = (): Promise<Mailer> => {
    made ??= import('./smtp.ts').then(({ smtpMailer }) => smtpMailer(url, domain, timeouts))
    return made
  }
  return {
    isConfigured: true,
    check: async () => (await mailer()).check(),
    send: async (message, signal) => (await mailer()).send(message, signal),
    close: () => void made?.then((made) => made.close()),
  }
}
