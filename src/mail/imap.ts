// Polls a mailbox over IMAP, read-only. E-mails are neither marked as read nor moved. The
// connection is closed after each poll.
import type { ImapFlow, ListResponse } from 'imapflow'
import { MailboxFailed, redactedLine, StopPolling } from './failures.ts'
import { maxMailBytes } from './size-limits.ts'
import { createStepTimer } from './step-timeouts.ts'

export { MailboxFailed, StopPolling } from './failures.ts'

export interface MailboxSettings {
  host: string
  port: number
  /**
   * `ssl`: TLS from the first byte. `tls`: STARTTLS, and an error if the server has none. `none`:
   * no encryption.
   */
  encryption: 'none' | 'ssl' | 'tls'
  validateCert: boolean
  username: string
  password: string
}

export type MailFolder = 'inbox' | 'important' | 'starred' | 'draft' | 'sent' | 'trash' | 'spam'

export interface PolledMessage {
  folder: MailFolder
  /** The name of the folder on the server. */
  path: string
  uidValidity: number
  uid: number
  /** The whole message, or only its first 256 KiB when the message is larger than 30 MiB. */
  bytes: Buffer
  sizeBytes: number
  isWhole: boolean
  flags: string[]
}

export interface PollOptions {
  signal?: AbortSignal
  /**
   * The timeout of each command in milliseconds. Fetching a message has ten times this timeout. The
   * poll also fails when the server sends nothing for this long.
   */
  timeoutMs?: number
}

export interface MailboxPollResult {
  folders: PolledFolder[]
  taken: number
  /**
   * The messages for which `take` threw an error. The poll continued after each of these messages.
   */
  failed: { path: string; uid: number; cause: unknown }[]
  isStopped: boolean
}

export interface PolledFolder {
  path: string
  folder: MailFolder
  uidValidity: number
  /**
   * The highest UID up to which every message was taken. The next poll continues after this UID, so
   * it reads the first failed message and all later messages again.
   */
  through: number
}

/**
 * The number of bytes that are fetched from the beginning of an oversized message: enough for its
 * headers.
 */
const headBytes = 256 * 1024

/**
 * Returns the mail folder of the CRM for a folder of the server, by its special use or its name.
 */
export function folderOf(path: string, specialUse: string | null | undefined, delimiter = '/'): MailFolder {
  const name = (path.split(delimiter).at(-1) ?? path).trim().toLowerCase()
  const use = (specialUse ?? '').toLowerCase()
  if (path.toLowerCase() === 'inbox' || use === '\\inbox') return 'inbox'
  if (use === '\\important' || name === 'important') return 'important'
  if (use === '\\flagged' || name === 'starred') return 'starred'
  if (use === '\\drafts' || name === 'drafts' || name === 'draft') return 'draft'
  if (use === '\\sent' || name.startsWith('sent')) return 'sent'
  if (use === '\\trash' || name === 'trash') return 'trash'
  if (use === '\\junk' || /^(junk|spam)\b/.test(name)) return 'spam'
  return 'inbox'
}

/**
 * Returns the folders to poll: the inbox, and every folder without subfolders. "All Mail" is left
 * out, because that folder repeats the e-mails of the other folders.
 */
function leaves(listed: readonly ListResponse[]): ListResponse[] {
  const selectable = listed.filter(({ flags }) => !flags.has('\\Noselect') && !flags.has('\\NonExistent'))
  const holdsOthers = ({ path, delimiter }: ListResponse): boolean =>
    delimiter !== '' && listed.some((other) => other.path.startsWith(path + delimiter))
  return selectable.filter((each) => {
    if (each.specialUse === '\\All' || each.flags.has('\\All') || each.name.toLowerCase() === 'all mail') return false
    return each.path.toLowerCase() === 'inbox' || !holdsOthers(each)
  })
}

/**
 * Where a poll of a folder begins: after the message `uid`, or with the messages since a time. The
 * server counts days in its own time zone.
 */
export type PollStart = { uid: number } | { since: Date }

/** The number of days that the first poll of a mailbox reaches back. */
const firstPollDays = 10

/** Returns the start of the first poll. */
export const firstPollStart = (now: Date): { since: Date } => ({
  since: new Date(now.getTime() - firstPollDays * 86_400_000),
})

/**
 * Calls `take` with the messages of every folder, oldest first. `startOf` returns the start for a
 * folder. A server that renumbers a folder changes its UIDVALIDITY; `startOf` gets this value and
 * can return a time to read the folder again. When `take` throws, the message counts as failed and
 * the poll continues. StopPolling ends the poll without an error. Throws MailboxFailed, with the
 * progress of the folders, when the server refuses, hangs or disconnects, and when `signal` aborts.
 */
export async function pollMailbox(
  settings: MailboxSettings,
  startOf: (path: string, uidValidity: number) => Promise<PollStart>,
  take: (message: PolledMessage) => Promise<void>,
  { signal, timeoutMs = 30_000 }: PollOptions = {},
): Promise<MailboxPollResult> {
  const client = await connection(settings, timeoutMs)
  const watched = createStepTimer(timeoutMs, signal, () => client.close())
  const result: MailboxPollResult = { folders: [], taken: 0, failed: [], isStopped: false }
  const secrets = [settings.password, settings.username]

  async function pollFolder(entry: ListResponse): Promise<void> {
    const { path } = entry
    // The lock keeps the folder selected and the connection alive while `take` runs.
    const lock = await watched(client.getMailboxLock(path, { readOnly: true }))
    try {
      await pollSelected(entry)
    } finally {
      lock.release()
    }
  }

  async function pollSelected(entry: ListResponse): Promise<void> {
    const { path } = entry
    const { uidValidity, uidNext } = client.mailbox || { uidValidity: 0, uidNext: 1 }
    const start = await startOf(path, Number(uidValidity))
    const last = 'uid' in start ? start.uid : 0
    const folder = folderOf(path, entry.specialUse, entry.delimiter || '/')
    const polled: PolledFolder = { path, folder, uidValidity: Number(uidValidity), through: last }
    // In IMAP, a range that begins after the last message returns the last message, so the result
    // is filtered.
    const found = (await watched(client.search({ ...start, uid: `${last + 1}:*` }, { uid: true }))) || []
    const uids = found.filter((uid) => uid > last).sort((one, other) => one - other)
    // The next poll does not read the messages that are older than `since`.
    if ('since' in start) polled.through = Math.max(uids[0] ?? uidNext, 1) - 1
    result.folders.push(polled)
    let isGapless = true
    for (const uid of uids) {
      const isDone = await pollMessage(polled, uid)
      isGapless &&= isDone
      if (isGapless) polled.through = uid
      if (result.isStopped) return
    }
    if (isGapless) polled.through = Math.max(polled.through, uidNext - 1)
  }

  /**
   * Fetches a message and calls `take` with the message. Returns whether the next poll may skip the
   * message.
   */
  async function pollMessage({ path, folder, uidValidity }: PolledFolder, uid: number): Promise<boolean> {
    const facts = await watched(client.fetchOne(String(uid), { size: true, flags: true }, { uid: true }))
    // The server returns nothing for a message that was removed after the search.
    if (!facts) return true
    const sizeBytes = facts.size ?? 0
    const isWhole = sizeBytes <= maxMailBytes
    // A large message may take long, so this step has ten times the usual time limit. The socket
    // timeout detects a silent server.
    const query = isWhole ? { source: true } : { source: { start: 0, maxLength: headBytes } }
    const fetched = await watched(client.fetchOne(String(uid), query, { uid: true }), 10 * timeoutMs)
    const bytes = fetched ? fetched.source : undefined
    if (bytes === undefined) return true
    try {
      await take({ folder, path, uidValidity, uid, bytes, sizeBytes, isWhole, flags: [...(facts.flags ?? [])] })
    } catch (cause) {
      if (cause instanceof StopPolling) result.isStopped = true
      else result.failed.push({ path, uid, cause })
      return false
    }
    result.taken++
    return true
  }

  try {
    await watched(client.connect())
    for (const entry of leaves(await watched(client.list()))) {
      await pollFolder(entry)
      if (result.isStopped) break
    }
    // A failed logout does not matter, because every message has been taken.
    await watched(client.logout()).catch(() => undefined)
    return result
  } catch (error) {
    const failure = error instanceof MailboxFailed ? error : new MailboxFailed(reasonOf(error, secrets))
    failure.folders = result.folders
    throw failure
  } finally {
    client.close()
  }
}

async function connection(
  { host, port, encryption, validateCert, username, password }: MailboxSettings,
  timeoutMs: number,
): Promise<ImapFlow> {
  // imapflow is imported by the first poll, because few installations read a mailbox.
  const { default: imapflow } = await import('imapflow')
  const client = new imapflow.ImapFlow({
    host,
    port,
    secure: encryption === 'ssl',
    ...(encryption !== 'ssl' && { doSTARTTLS: encryption === 'tls' }),
    tls: { rejectUnauthorized: validateCert },
    auth: { user: username, pass: password },
    logger: false,
    emitLogs: false,
    disableAutoIdle: true,
    disableCompression: true,
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    // Protects against a server that announces a small message and sends without end.
    maxLiteralSize: maxMailBytes + 1024,
    maxResponseSize: maxMailBytes + 1024 * 1024,
  })
  // The pending step rejects with the same error. Without a listener, the error event would end the
  // process.
  client.on('error', () => undefined)
  return client
}

function reasonOf(error: unknown, secrets: readonly string[]): string {
  const { authenticationFailed, code, responseText, message } = error as Error & {
    authenticationFailed?: boolean
    code?: string
    responseText?: string
  }
  if (authenticationFailed) return 'The mailbox did not accept user name and password.'
  if (/TIMEOUT/.test(code ?? '')) return 'The mailbox did not answer in time.'
  return `The mailbox could not be read: ${redactedLine(responseText ?? message ?? 'the connection broke', secrets)}`
}
