// Starts servers outside of the installation for the tests of a file: one for all tests, which
// forgets before each test, or a mailbox for each test.
import { beforeEach } from 'vitest'
import type { TestServer } from './app.ts'
import { type ImapServer, startImap } from './imap.ts'
import { type Receiver, startReceiver } from './receiver.ts'
import { type SmtpServer, startSmtp } from './smtp.ts'
import { useNew, useOne } from './using.ts'

/** Before each test, the server accepts mails again and has none. */
export function useSmtp(): SmtpServer {
  const smtp = useOne(startSmtp)
  beforeEach(() => {
    smtp.behave('accept')
    smtp.received.length = 0
  })
  return smtp
}

/** Before each test, the receiver replies 200 again and has no requests. */
export function useReceiver(): Receiver {
  const receiver = useOne(startReceiver)
  beforeEach(() => {
    receiver.behave('ok')
    receiver.received.length = 0
  })
  return receiver
}

/** Starts a mailbox for each test, which the server polls. */
export function useImap(server: TestServer): ImapServer {
  const imap = useNew(startImap)
  beforeEach(async () => {
    // A new schedule begins at its first tick.
    await server.tick()
    const { host, port, username, password } = imap
    Object.assign(server.app.services.config, {
      imap: { host, port, username, password, encryption: 'none', validateCert: true },
    })
  })
  return imap
}

/**
 * Advances the clock by five minutes, the interval of the schedule, and runs it. Returns the names
 * of the events.
 */
export async function poll(server: TestServer): Promise<string[]> {
  server.clock.advanceMs(5 * 60_000)
  server.events()
  await server.tick()
  await server.work()
  return server.events()
}
