// An SMTP server on loopback that misbehaves on demand. It records the mails that it accepted, even
// if the client never got the confirmation.
import { domainToASCII } from 'node:url'
import { SMTPServer, type SMTPServerEnvelope, type SMTPServerSession } from 'smtp-server'

export type SmtpMode =
  | 'accept'
  /** Replies 550 to every recipient. */
  | 'refuse'
  /** Replies 550 to one recipient. */
  | { refuseRecipient: string }
  /** Replies 451 to every recipient. */
  | 'greylist'
  /** Sends this reply at this step. */
  | { reply: number; at: 'connect' | 'mail' | 'rcpt' | 'data'; text?: string }
  /** Sends no greeting after the connection is made. */
  | 'hang'
  /** Receives the message without a reply, and does not record it. */
  | 'hang-data'
  /** Records the message without a reply. */
  | 'take-silently'
  /** Closes the connection in the middle of the message. */
  | 'drop'
  /** Records the message and closes the connection before the confirmation. */
  | 'half-accept'
  /** Delays each reply by 50 ms. */
  | 'slow'
  /** Sends no reply before the promise resolves. */
  | { waitFor: Promise<void> }

export interface TakenMail {
  from: string
  to: string[]
  raw: string
  /** The number of its connection, from 1. */
  connection: number
}

export interface SmtpServer {
  url: string
  port: number
  received: TakenMail[]
  /** Sets the behavior from now on. */
  behave(mode: SmtpMode): void
  /** Returns the number of connections so far and of those that are open. */
  connections(): { total: number; open: number }
  /** Closes every connection, like a server that restarts. */
  disconnect(): void
  close(): Promise<void>
}

export interface SmtpOptions {
  /** Requires a login. The URL contains it. */
  login?: { user: string; pass: string }
  /** Offers STARTTLS with a self-signed certificate. */
  offersTls?: boolean
}

/** Encodes the domain again, because smtp-server decodes internationalized domains. */
const ascii = (address: string): string => {
  const at = address.lastIndexOf('@')
  return `${address.slice(0, at)}@${domainToASCII(address.slice(at + 1))}`
}

const refusal = (code: number, text: string): Error => Object.assign(new Error(text), { responseCode: code })

export async function startSmtp({ login, offersTls = false }: SmtpOptions = {}): Promise<SmtpServer> {
  let mode: SmtpMode = 'accept'
  let total = 0
  const numbers = new Map<string, number>()
  const received: TakenMail[] = []

  const socketOf = (session: SMTPServerSession): { destroy(): void } | undefined =>
    [...server.connections].find((each) => each.session?.id === session.id)?._socket
  /** Sends the reply that the mode defines for this step. */
  const answer = (at: 'connect' | 'mail' | 'rcpt' | 'data', reply: (error?: Error | null) => void): void => {
    if (typeof mode === 'object' && 'reply' in mode && mode.at === at)
      reply(refusal(mode.reply, mode.text ?? 'as you wish'))
    else if (mode === 'hang') return
    else if (mode === 'slow') setTimeout(reply, 50)
    else if (typeof mode === 'object' && 'waitFor' in mode) void mode.waitFor.then(() => reply())
    else reply()
  }
  const take = (session: SMTPServerSession, { mailFrom, rcptTo }: SMTPServerEnvelope, raw: string): void => {
    const from = mailFrom ? mailFrom.address : ''
    received.push({
      from,
      to: rcptTo.map(({ address }) => ascii(address)),
      raw,
      connection: numbers.get(session.id) ?? 0,
    })
  }

  const server = new SMTPServer({
    disableReverseLookup: true,
    authOptional: login === undefined,
    allowInsecureAuth: true,
    disabledCommands: [...(offersTls ? [] : ['STARTTLS']), ...(login ? [] : ['AUTH'])],
    closeTimeout: 10,
    onAuth: ({ username, password }, _session, reply) => {
      if (username === login?.user && password === login?.pass) return reply(null, { user: username })
      reply(new Error(`No entry for ${username} with ${password}`))
    },
    onConnect: (session, reply) => {
      numbers.set(session.id, ++total)
      answer('connect', reply)
    },
    onMailFrom: (_address, _session, reply) => answer('mail', reply),
    onRcptTo: ({ address }, _session, reply) => {
      if (mode === 'refuse') return reply(refusal(550, `${ascii(address)} is unknown here`))
      if (mode === 'greylist') return reply(refusal(451, 'Come back later'))
      if (typeof mode === 'object' && 'refuseRecipient' in mode && mode.refuseRecipient === ascii(address))
        return reply(refusal(550, `${ascii(address)} is unknown here`))
      answer('rcpt', reply)
    },
    onData: (stream, session, reply) => {
      const chunks: Buffer[] = []
      const isDropped = mode === 'drop'
      stream.on('data', (chunk: Buffer) => {
        chunks.push(chunk)
        if (isDropped) socketOf(session)?.destroy()
      })
      stream.on('end', () => {
        if (isDropped || mode === 'hang-data') return
        const raw = Buffer.concat(chunks).toString()
        if (mode === 'take-silently') return take(session, session.envelope, raw)
        if (mode === 'half-accept') {
          take(session, session.envelope, raw)
          socketOf(session)?.destroy()
          return
        }
        answer('data', (error) => {
          if (!error) take(session, session.envelope, raw)
          reply(error, 'Taken')
        })
      })
    },
  })
  // Connection errors are expected.
  server.on('error', () => undefined)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.server.address()
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0
  const disconnect = (): void => {
    for (const connection of server.connections) connection._socket.destroy()
  }
  return {
    url: `smtp://${login ? `${encodeURIComponent(login.user)}:${encodeURIComponent(login.pass)}@` : ''}127.0.0.1:${port}`,
    port,
    received,
    behave: (next) => {
      mode = next
    },
    connections: () => ({ total, open: server.connections.size }),
    disconnect,
    close: () =>
      new Promise((resolve) => {
        disconnect()
        server.close(() => resolve())
      }),
  }
}
