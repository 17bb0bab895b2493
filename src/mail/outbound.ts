// Sends mail: over SMTP (smtp.ts) or into a folder. One call sends at most one copy: what was handed over is never handed over again
// by itself, and a failure says whether it lasts (MailRefused) or may pass (MailDeferred).
import { MailDeferred } from './failures.ts'
import { folderMailer } from './folder-mailer.ts'
import type { OutboundMessage } from './message.ts'

export { MailDeferred, MailRefused } from './failures.ts'
export type { OutboundAttachment, OutboundMessage } from './message.ts'

export interface Mailer {
  /** Whether there is anywhere to send to. */
  isConfigured: boolean
  /** Null when the server would take mail, else a sentence without secrets. Asks again after `timeouts.checkMs` at the earliest. */
  check(): Promise<string | null>
  /**
   * Resolves when the server has taken responsibility for the mail. `refused` are recipients it would not take while it took
   * others. Throws MailRefused or MailDeferred, also when `signal` ends it.
   */
  send(message: OutboundMessage, signal: AbortSignal): Promise<SentMail>
  /** Ends connections that are idle; one that is sending ends afterwards. */
  close(): void
}

export interface SentMail {
  /** What the server said, one line. */
  response: string
  refused: { address: string; reason: string }[]
}

export interface MailTimeouts {
  connectMs?: number
  greetingMs?: number
  /** Of silence. */
  socketMs?: number
  /** Of one mail from first to last, for servers that are never quite silent. */
  totalMs?: number
  /** How long a connection is kept for the next mail. */
  idleMs?: number
  /** How long the answer of `check` holds. */
  checkMs?: number
}

export interface MailerSettings {
  /**
   * `smtp://user:pass@host:port`, `smtps://…` (with options of nodemailer as query, such as `?requireTLS=true`), `file:<folder>`
   * for a folder of .eml files, or null.
   */
  url: string | null
  /** Says who we are to the server. */
  domain: string
  timeouts?: MailTimeouts
}

/** Throws an error with a sentence when the url is none of those. */
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

/** Loaded by the first mail or question. */
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
