// Polling a misbehaving IMAP server: every message is read once and in order, nothing is changed on
// the server, and polling always ends.
import { inspect } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { firstPollStart, folderOf, type PolledMessage, pollMailbox, StopPolling } from '../../src/mail/imap.ts'
import { type ImapServer, startImap } from '../support/imap.ts'
import { until } from '../support/until.ts'
import { lines } from './given.ts'

const now = new Date('2026-03-01T09:30:00Z')
const mail = (subject: string): Buffer => lines('From: ada@example.com', `Subject: ${subject}`, '', 'Hello')

let imap: ImapServer
beforeEach(async () => {
  imap = await startImap()
})
afterEach(() => imap.close())

const settings = () => ({
  host: imap.host,
  port: imap.port,
  encryption: 'none' as const,
  validateCert: true,
  username: imap.username,
  password: imap.password,
})

/** Waits until the server has noticed that all connections are closed. */
const allClosed = () => until(() => imap.connections().open === 0)

/** Returns a poller that stores the highest uid per folder and UIDVALIDITY. */
function poller() {
  const seen = new Map<string, number>()
  const taken: PolledMessage[] = []
  return {
    taken,
    subjects: () => taken.map(({ bytes }) => /Subject: (.*)\r/.exec(bytes.toString())?.[1]),
    poll: async (
      options: { signal?: AbortSignal; timeoutMs?: number; take?: (message: PolledMessage) => void } = {},
    ) => {
      const { take, ...rest } = options
      const result = await pollMailbox(
        settings(),
        async (path, validity) => {
          const uid = seen.get(`${path}/${validity}`)
          return uid === undefined ? firstPollStart(now) : { uid }
        },
        async (message) => {
          take?.(message)
          taken.push(message)
        },
        { timeoutMs: 20_000, ...rest },
      )
      for (const { path, uidValidity, through } of result.folders) seen.set(`${path}/${uidValidity}`, through)
      return result
    },
  }
}

describe('folderOf', () => {
  it.each([
    ['INBOX', null, 'inbox'],
    ['inbox', '\\Inbox', 'inbox'],
    ['[Gmail]/Important', '\\Important', 'important'],
    ['Important', null, 'important'],
    ['[Gmail]/Starred', '\\Flagged', 'starred'],
    ['Drafts', '\\Drafts', 'draft'],
    ['Sent Items', null, 'sent'],
    ['Gesendet', '\\Sent', 'sent'],
    ['Trash', null, 'trash'],
    ['Junk E-mail', null, 'spam'],
    ['Spam', null, 'spam'],
    ['Projects/Presents', null, 'inbox'],
    ['Projects', null, 'inbox'],
  ])('takes %s (%s) for %s', (path, use, folder) => {
    expect(folderOf(path, use)).toBe(folder)
  })
})

describe('pollMailbox', () => {
  it('takes what came in the last ten days, oldest first, with its bytes and flags, and nothing older', async () => {
    imap.deliver('INBOX', mail('old'), { date: new Date('2026-02-10T09:00:00Z') })
    imap.deliver('INBOX', mail('one'), { date: new Date('2026-02-20T09:00:00Z'), flags: ['\\Flagged'] })
    imap.deliver('INBOX', mail('two'))
    const { poll, taken, subjects } = poller()
    const result = await poll()
    expect(subjects()).toEqual(['one', 'two'])
    expect(taken[0]).toMatchObject({ folder: 'inbox', path: 'INBOX', uidValidity: 1000, uid: 2, flags: ['\\Flagged'] })
    expect(taken[0]?.bytes.equals(mail('one'))).toBe(true)
    expect(result).toMatchObject({ taken: 2, failed: [], isStopped: false })
  })

  it('takes every later message, however old it is, and still not what the first poll left', async () => {
    const { poll, subjects } = poller()
    imap.addFolder('Empty')
    imap.deliver('INBOX', mail('old'), { date: new Date('2026-02-10T09:00:00Z') })
    await poll()
    imap.deliver('INBOX', mail('one'), { date: new Date('2026-02-11T09:00:00Z') })
    imap.deliver('Empty', mail('two'), { date: new Date('2026-02-11T09:00:00Z') })
    await poll()
    expect(subjects()).toEqual(['one', 'two'])
  })

  it('changes nothing there, not even what is read', async () => {
    imap.deliver('INBOX', mail('one'))
    await poller().poll()
    expect(imap.folder('INBOX').messages[0]?.flags).toEqual([])
    expect(imap.commands.filter((command) => /^(SELECT|UID STORE|EXPUNGE)/.test(command))).toEqual([])
  })

  it('goes on after what is known, and asks for no bytes twice', async () => {
    const { poll, subjects } = poller()
    imap.deliver('INBOX', mail('one'))
    await poll()
    await poll()
    imap.deliver('INBOX', mail('two'))
    await poll()
    expect(subjects()).toEqual(['one', 'two'])
    expect(imap.commands.filter((command) => command.includes('PEEK'))).toHaveLength(2)
  })

  it('reads a folder anew that was numbered anew', async () => {
    const { poll, taken } = poller()
    imap.deliver('INBOX', mail('one'))
    await poll()
    imap.renumber('INBOX')
    await poll()
    expect(taken.map(({ uidValidity, uid }) => [uidValidity, uid])).toEqual([
      [1000, 1],
      [1001, 1],
    ])
  })

  it('looks into folders without folders, and the inbox, but not into the one that has all mails again', async () => {
    const folders: [string, string[]][] = [
      ['INBOX/Customers', []],
      ['[Gmail]', ['\\Noselect', '\\HasChildren']],
      ['[Gmail]/All Mail', ['\\All']],
      ['[Gmail]/Sent Mail', ['\\Sent']],
      ['Everything', ['\\All']],
      ['Old', []],
      ['Old/2025', []],
    ]
    for (const [path, attributes] of folders) imap.addFolder(path, attributes)
    for (const [path] of [['INBOX'], ...folders]) if (path !== '[Gmail]') imap.deliver(path ?? '', mail(path ?? ''))
    const { poll, taken } = poller()
    await poll()
    expect(taken.map(({ path, folder }) => `${path} ${folder}`).sort()).toEqual([
      'INBOX inbox',
      'INBOX/Customers inbox',
      'Old/2025 inbox',
      '[Gmail]/Sent Mail sent',
    ])
  })

  it('goes on when one message cannot be taken, and offers it again', async () => {
    for (const subject of ['one', 'two', 'three']) imap.deliver('INBOX', mail(subject))
    const { poll, subjects } = poller()
    const full = new Error('disk full')
    const result = await poll({
      take: ({ uid }) => {
        if (uid === 2) throw full
      },
    })
    expect(result).toMatchObject({ taken: 2, failed: [{ path: 'INBOX', uid: 2, cause: full }] })
    expect(result.folders[0]?.through).toBe(1)
    expect(subjects()).toEqual(['one', 'three'])
    await poll()
    expect(subjects()).toEqual(['one', 'three', 'two', 'three'])
  })

  it('ends in good order when it is told to stop', async () => {
    for (const subject of ['one', 'two', 'three']) imap.deliver('INBOX', mail(subject))
    const { poll, subjects } = poller()
    const result = await poll({
      take: ({ uid }) => {
        if (uid === 2) throw new StopPolling()
      },
    })
    expect(result).toMatchObject({ isStopped: true, failed: [] })
    expect(subjects()).toEqual(['one'])
    await poll()
    expect(subjects()).toEqual(['one', 'two', 'three'])
  })

  it('gives the headers of a message larger than 30 MiB, and fetches no more of it', async () => {
    imap.deliver('INBOX', mail('large'))
    imap.behave('huge')
    const { poll, taken } = poller()
    await poll()
    expect(taken).toMatchObject([{ uid: 1, sizeBytes: 40_000_000, isWhole: false }])
    expect(imap.commands.filter((command) => command.includes('PEEK'))).toEqual([expect.stringContaining('<0.262144>')])
  })

  it('tells no secret when it is not let in', async () => {
    imap.behave('refuse')
    const error = await poller()
      .poll()
      .catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({
      name: 'MailboxFailed',
      message: 'The mailbox did not accept user name and password.',
    })
    expect(inspect(error, { depth: 9, showHidden: true })).not.toContain(imap.password)
    await allClosed()
  })

  it.each(['hang', 'hang-fetch'] as const)('is over in time when the server is in the mood to %s', async (mode) => {
    imap.deliver('INBOX', mail('one'))
    imap.behave(mode)
    await expect(poller().poll({ timeoutMs: 400 })).rejects.toMatchObject({
      name: 'MailboxFailed',
      message: 'The mailbox did not answer in time.',
    })
  })

  it('keeps what was taken when the server breaks off in a message, and takes the rest next time', async () => {
    const { poll, subjects } = poller()
    imap.deliver('INBOX', mail('one'))
    imap.deliver('INBOX', mail('two'))
    const broken = poll({ take: () => imap.behave('drop') })
    await expect(broken).rejects.toMatchObject({ name: 'MailboxFailed', folders: [{ path: 'INBOX', through: 1 }] })
    expect(subjects()).toEqual(['one'])
    imap.behave('accept')
    await poll()
    expect(subjects()).toEqual(['one', 'one', 'two'])
  })

  it('ends at once when it is cancelled, and closes the connection', async () => {
    imap.deliver('INBOX', mail('one'))
    imap.behave('hang-fetch')
    const stop = new AbortController()
    const polled = poller().poll({ signal: stop.signal })
    setTimeout(() => stop.abort(), 100)
    await expect(polled).rejects.toMatchObject({ message: 'The poll of the mailbox was stopped.' })
    await allClosed()
  })

  it.each(['ssl', 'tls'] as const)('says nothing in the open when it is to be protected by %s', async (encryption) => {
    const polled = pollMailbox(
      { ...settings(), encryption },
      async () => ({ uid: 0 }),
      async () => {},
      { timeoutMs: 2000 },
    )
    await expect(polled).rejects.toMatchObject({ name: 'MailboxFailed' })
    expect(imap.commands.filter((command) => /LOGIN|AUTHENTICATE/.test(command))).toEqual([])
  })

  it('says that unhandled rejection', async () => {
    await imap.close()
    await expect(poller().poll()).rejects.toMatchObject({ name: 'MailboxFailed' })
    imap = await startImap()
  })
})
