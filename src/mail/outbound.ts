// Sends e-mails over SMTP (smtp.ts) or into a folder. One call sends at most one copy: an e-mail
// that was handed over is not sent again automatically. A failure is permanent (MailRefused) or
// temporary (MailDeferred).
import { MailDeferred } from './failures.ts'
import { folderMailer } from './folder-mailer.ts'
import type { OutboundMessage } from './message.ts'

export { MailDeferred, MailRefused } from './failures.ts'
export type { OutboundAttachment, OutboundMessage } from './message.ts'

export interface Mailer {
  /** Whether a mail server or a folder is configured. */
  isConfigured: boolean
  /**
   * Checks the server. Returns null when the server accepts e-mails, otherwise a sentence without
   * secrets. The result is cached for `timeouts.checkMs`.
   */
  check(): Promise<string | null>
  /**
   * Sends an e-mail. Resolves when the server has accepted the e-mail for at least one recipient.
   * `refused` lists the recipients that the server rejected. Throws MailRefused or MailDeferred,
   * also when `signal` aborts.
   */
  send(message: OutboundMessage, signal: AbortSignal): Promise<SentMail>
  /** Closes idle connections at once. Closes a busy connection when its e-mail is done. */
  close(): void
}

export interface SentMail {
  /** The reply of the server as one line. */
  response: string
  refused: { address: string; reason: string }[]
}

export interface MailTimeouts {
  connectMs?: number
  greetingMs?: number
  /** The maximum milliseconds without data from the server. */
  socketMs?: number
  /**
   * The maximum milliseconds for one e-mail. Ends a delivery to a slow server that never pauses for
   * `socketMs`.
   */
  totalMs?: number
  /** The time in milliseconds that an idle connection is kept for the next e-mail. */
  idleMs?: number
  /** The time in milliseconds that the result of `check` is cached. */
  checkMs?: number
}

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
