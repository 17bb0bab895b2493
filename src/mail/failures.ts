// How mail fails, in words a user may read: one short line, never a credential. Whoever sends or receives decides by the class
// alone what happens next.

/** The mail will never be accepted as it is; trying again is of no use. */
export class MailRefused extends Error {
  override name = 'MailRefused'
}

/** Not now: the server is away, slow, says "later", or does not know us. The same mail may be tried again. */
export class MailDeferred extends Error {
  override name = 'MailDeferred'
  /** The whole message was handed over and no answer came: it may have arrived, and another try may make a second copy. */
  readonly mayHaveArrived: boolean

  constructor(message: string, { mayHaveArrived = false, cause }: { mayHaveArrived?: boolean; cause?: unknown } = {}) {
    super(message, { cause })
    this.mayHaveArrived = mayHaveArrived
  }
}

/** The bytes are no mail, or `isMail`: a mail that cannot be read within bounds. */
export class UnreadableMail extends Error {
  override name = 'UnreadableMail'
  readonly isMail: boolean

  constructor(message: string, { isMail = false, cause }: { isMail?: boolean; cause?: unknown } = {}) {
    super(message, { cause })
    this.isMail = isMail
  }
}

/** Too many mails are being read; the same one may be given again in a while. */
export class MailReaderBusy extends Error {
  override name = 'MailReaderBusy'
}

/** The mailbox could not be polled to its end. */
export class MailboxFailed extends Error {
  override name = 'MailboxFailed'
  /** How far each folder had come: the place to go on from. */
  folders: { path: string; uidValidity: number; through: number }[] = []
}

/** Thrown by whoever takes messages from a mailbox to end the poll after this one, without failure. */
export class StopPolling extends Error {
  override name = 'StopPolling'
}

/** One line of at most 300 characters, without the given secrets in any form they travel in. */
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

/** Breaks and control characters become a space: what ends a header or forges a line of a log is gone. */
export const withoutControls = (text: string): string =>
  text
    .replaceAll(/[\p{Cc}\u2028\u2029]+/gu, ' ')
    .replaceAll(/ {2,}/g, ' ')
    .trim()
