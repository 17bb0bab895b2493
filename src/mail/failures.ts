// The error classes of sending and receiving mail. Each message is one short line without
// credentials, so users may see the message. Callers decide by the class whether to retry.

/** A permanent failure: the server will never accept this e-mail. The e-mail is not retried. */
export class MailRefused extends Error {
  override name = 'MailRefused'
}

/**
 * A temporary failure: the server is unreachable or slow, has deferred the e-mail or has refused
 * the login. A retry may succeed.
 */
export class MailDeferred extends Error {
  override name = 'MailDeferred'
  /**
   * Whether the whole message was sent without an acknowledgment. A retry may then deliver a second
   * copy.
   */
  readonly mayHaveArrived: boolean

  constructor(message: string, { mayHaveArrived = false, cause }: { mayHaveArrived?: boolean; cause?: unknown } = {}) {
    super(message, { cause })
    this.mayHaveArrived = mayHaveArrived
  }
}

/**
 * Thrown for bytes that are not an e-mail. With `isMail`, the bytes are an e-mail that exceeds the
 * limits of the parser.
 */
export class UnreadableMail extends Error {
  override name = 'UnreadableMail'
  readonly isMail: boolean

  constructor(message: string, { isMail = false, cause }: { isMail?: boolean; cause?: unknown } = {}) {
    super(message, { cause })
    this.isMail = isMail
  }
}

/** Thrown when too many e-mails are being parsed at once. The same e-mail may be retried later. */
export class MailReaderBusy extends Error {
  override name = 'MailReaderBusy'
}

/** Thrown when the poll of a mailbox ends early because of an error. */
export class MailboxFailed extends Error {
  override name = 'MailboxFailed'
  /** The last UID read in each folder. The next poll continues after this UID. */
  folders: { path: string; uidValidity: number; through: number }[] = []
}

/** Thrown by a `take` callback to end the poll after this message without an error. */
export class StopPolling extends Error {
  override name = 'StopPolling'
}

/**
 * Returns the text as one line of at most 300 characters with the secrets masked. The URL-encoded
 * and base64 forms of the secrets are masked, too.
 */
export function redactedLine(text: string, secrets: readonly (string | null | undefined)[] = []): string {
  let line = text
  for (const secret of secrets) {
    if (!secret) continue
    for (const form of [secret, encodeURIComponent(secret), Buffer.from(secret).toString('base64')])
      line = line.replaceAll(form, '***')
  }
  line = withoutControls(line)
  return line.length <= 300 ? line : `${line.slice(0, 299).trimEnd()}…`
}

/**
 * Replaces line breaks and control characters with a space, so that the text cannot add a header or
 * a log line.
 */
export const withoutControls = (text: string): string =>
  text
    .replaceAll(/[\p{Cc}\u2028\u2029]+/gu, ' ')
    .replaceAll(/ {2,}/g, ' ')
    .trim()
