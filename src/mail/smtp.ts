// Sends e-mails over SMTP through a small pool of connections. Implements the guarantees of
// outbound.ts: one call sends at most one copy, and a failure is either permanent or temporary.
import { Readable } from 'node:stream'
import nodemailer from 'nodemailer'
import { parseConnectionUrl } from 'nodemailer/lib/shared'
import { MailDeferred, MailRefused, redactedLine } from './failures.ts'
import type { Mailer, MailTimeouts, SentMail } from './mailer.ts'
import { type Composed, compose } from './message.ts'

/**
 * Yields the message in chunks of 64 KiB. With small chunks, the stream ends only when the server
 * has taken nearly the whole message.
 */
function* pieces(raw: Buffer): Generator<Buffer> {
  for (let at = 0; at < raw.length; at += 65_536) yield raw.subarray(at, at + 65_536)
}

/** An error of nodemailer. `permanent` is set only when the server replied. */
interface Failure extends Error {
  code?: string | undefined
  response?: string | undefined
  responseCode?: number | undefined
  permanent?: boolean | undefined
}

export function smtpMailer(url: string, domain: string, timeouts: MailTimeouts): Mailer {
  const settings = parseConnectionUrl(url)
  const secrets = [settings.auth?.pass, settings.auth?.user]
  const transport = nodemailer.createTransport({
    name: domain,
    connectionTimeout: timeouts.connectMs ?? 10_000,
    greetingTimeout: timeouts.greetingMs ?? 10_000,
    socketTimeout: timeouts.socketMs ?? 30_000,
    socketCloseTimeout: 1_000,
    maxConnections: 2,
    maxMessages: 100,
    idleTimeout: timeouts.idleMs ?? 5_000,
    ...settings,
    // The options below override those of the URL. The pool retries only when no byte of the
    // message was sent. Secrets are never logged.
    pool: true as const,
    maxRequeues: 1,
    logger: false,
    debug: false,
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  // Maps the message id of each e-mail that is being sent to its stream. The state of the stream
  // tells the pool whether to retry, and tells `deliver` whether the whole message was sent.
  // Nodemailer's own stream cannot show this, because it is filled before anything is sent.
  const handed = new Map<string, Readable>()
  transport.use('stream', (mail, done) => {
    const { message, data } = mail
    message.createReadStream = () => {
      const stream = Readable.from(pieces(data.raw as Buffer), { objectMode: false })
      handed.set(String(data.messageId), stream)
      return stream
    }
    done()
  })
  // The error of an idle connection is ignored, because it does not concern any e-mail.
  transport.on('error', () => undefined)

  async function deliver(
    { raw, sender, recipients }: Composed,
    messageId: string,
    signal: AbortSignal,
  ): Promise<SentMail> {
    const ends = AbortSignal.any([signal, AbortSignal.timeout(timeouts.totalMs ?? 300_000)])
    try {
      const info = await transport.sendMail({
        raw,
        messageId,
        envelope: { from: sender, to: [...recipients.keys()] },
        signal: ends,
      })
      const refused = (info.rejectedErrors ?? []).map((error) => {
        const address = error.recipient ?? ''
        return { address: recipients.get(address) ?? address, reason: reasonOf(error, secrets) }
      })
      return { response: redactedLine(info.response, secrets), refused }
    } catch (cause) {
      if (!(cause instanceof Error)) throw cause
      throw failureOf(cause, handed.get(messageId)?.readableEnded ?? false, secrets, signal.aborted)
    } finally {
      handed.delete(messageId)
    }
  }

  let asked: Promise<string | null> | null = null
  async function ask(): Promise<string | null> {
    try {
      await transport.verify()
      return null
    } catch (error) {
      return `Outgoing mail: ${reasonOf(error as Failure, secrets)}`
    } finally {
      setTimeout(() => {
        asked = null
      }, timeouts.checkMs ?? 30_000).unref()
    }
  }

  return {
    isConfigured: true,
    check: () => {
      asked ??= ask()
      return asked
    },
    send: async (message, signal) => {
      const composed = await compose(message)
      if (signal.aborted) throw new MailDeferred('Sending was stopped.')
      if (handed.has(message.messageId)) throw new MailDeferred('The same e-mail is being sent already.')
      return deliver(composed, message.messageId, signal)
    },
    close: () => transport.close(),
  }
}

/**
 * Returns MailRefused for a permanent reply about this e-mail, otherwise MailDeferred. A greeting,
 * TLS or login error is temporary, because it does not concern this e-mail.
 */
function failureOf(
  error: Failure,
  wasHandedOver: boolean,
  secrets: readonly (string | undefined)[],
  isStopped: boolean,
): Error {
  const reason = isStopped ? 'Sending was stopped.' : reasonOf(error, secrets)
  const isOfThisMail = error.code === 'EENVELOPE' || error.code === 'EMESSAGE'
  const isPermanent = error.permanent ?? error.responseCode === undefined
  // Reply 530 asks for a login, so it is not a reply about this e-mail.
  if (isOfThisMail && isPermanent && error.responseCode !== 530) return new MailRefused(reason)
  const mayHaveArrived = wasHandedOver && error.responseCode === undefined
  return new MailDeferred(reason, { mayHaveArrived, cause: redactedLine(error.message, secrets) })
}

const sentences: Record<string, string> = {
  EAUTH: 'The server did not accept user name and password.',
  ENOAUTH: 'The server requires a user name and password.',
  ETLS: 'No TLS connection to the server could be made.',
  EDNS: 'The host name of the server cannot be resolved.',
  ECONNECTION: 'The server closed the connection.',
  ESOCKET: 'The server cannot be reached, or the connection broke.',
  ETIMEDOUT: 'The server did not answer in time.',
  EABORT: 'The server took too long.',
}

function reasonOf(error: Failure, secrets: readonly (string | undefined)[]): string {
  const known = sentences[error.code ?? '']
  // A reply to a failed login may repeat the credentials, so a fixed sentence replaces it. Any
  // other reply is more specific than the fixed sentence.
  if (known !== undefined && (error.response === undefined || error.code === 'EAUTH')) return known
  return redactedLine(error.response ?? error.message, secrets)
}
