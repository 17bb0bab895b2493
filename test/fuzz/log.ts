// Finds errors in the server's log: failed listeners, jobs and event consumers. Ignores failures of
// other servers (mail, outgoing calls) and jobs that gave up on purpose.
import { BuryJob } from '../../src/jobs/queue.ts'
import { OutboundError } from '../../src/kernel/outbound/client.ts'
import { MailDeferred, MailRefused } from '../../src/mail/outbound.ts'
import type { TestServer } from '../support/app.ts'

const isTheirs = (cause: unknown): boolean =>
  [BuryJob, MailDeferred, MailRefused, OutboundError].some((kind) => cause instanceof kind)

export function listenToLog({ app }: TestServer): { take(): string[] } {
  const heard: string[] = []
  const hear = (about: unknown, sentence: unknown): void => {
    const { err, ...more } = (typeof about === 'object' && about !== null ? about : { about }) as { err?: unknown }
    if (isTheirs(err)) return
    // A job that ends its retries itself logs no error: the fake mailer refuses e-mails for good.
    if (sentence === 'A job was buried.' && err === undefined) return
    const cause = err instanceof Error ? (err.stack ?? err.message) : String(err)
    heard.push(`The log says: ${String(sentence)} ${JSON.stringify(more).slice(0, 400)} ${cause.slice(0, 1_500)}`)
  }
  Object.assign(app.services.log, { error: hear, fatal: hear })
  return { take: () => heard.splice(0) }
}
