// The types of a mailer, which smtp.ts and folder-mailer.ts share.
import type { OutboundMessage } from './message.ts'

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
