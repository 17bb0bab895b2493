// The errors of mail. Each message is one short line without credentials that users may see.
// Callers decide by the class whether to retry.

/** Permanent: the server will never accept this e-mail, so it is not retried. */
export class MailRefused extends Error {
  override name = 'MailRefused'
}

/**
 * Temporary: the server is unreachable, slow, deferred the e-mail or refused the login. A retry may
 * succeed.
 */
export class MailDeferred extends Error {
  override name = 'MailDeferred'
  /** The whole message was sent but not acknowledged, so a retry may deliver it twice. */
  readonly mayHaveArrived: boolean

  constructor(message: string, { mayHaveArrived = false, cause }: { mayHaveArrived?: boolean; cause?: unknown } = {}) {
    super(message, { cause })
    this.mayHaveArrived = mayHaveArrived
  }
}

/** The bytes are not an e-mail, or, with `isMail`, one that exceeds the limits of the reader. */
export class UnreadableMail extends Error {
  override name = 'UnreadableMail'
  readonly isMail: boolean

  constructor(message: string, { isMail = false, cause }: { isMail?: boolean; cause?: unknown } = {}) {
    super(message, { cause })
    this.isMail = isMail
  }
}

/** Too many e-mails are being read at once; the same one may be retried later. */
export class MailReaderBusy extends Error {
  override name = 'MailReaderBusy'
}

/** The poll of the mailbox ended early. */
export class MailboxFailed extends Error {
  override name = 'MailboxFailed'
  /** The last UID read in each folder; the next poll continues there. */
  folders: { path: string; uidValidity: number; through: number }[] = []
}

/** Thrown by a `take` callback to end the poll after this message without an error. */
export class StopPolling extends Error {
  override name = 'StopPolling'
}

/** One line of at most 300 characters, with the secrets masked, also URL-encoded and in base64. */
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
 * Replaces line breaks and control characters by a space, so that the text cannot add a header or a
 * log line.
 */
export const withoutControls = (text: string): string =>
  text
    .replaceAll(/[\p{Cc}\u2028\u2029]+/gu, ' ')
    .replaceAll(/ {2,}/g, ' ')
    .trim()
