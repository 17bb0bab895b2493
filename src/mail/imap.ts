// Polls a mailbox over IMAP: looks, takes, and leaves everything as it was. Mails stay unread, and the connection is closed
// whatever happens.
import type { ImapFlow, ListResponse } from 'imapflow'
import { MailboxFailed, redactedLine, StopPolling } from './failures.ts'
import { maxMailBytes } from './size-limits.ts'
import { createStepTimer } from './step-timeouts.ts'

export { MailboxFailed, StopPolling } from './failures.ts'

export interface MailboxSettings {
  host: string
  port: number
  /** `ssl` from the first byte, `tls` by STARTTLS and not without, `none` in the open. */
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
  /** All of them, or the headers of a message of more than 30 MiB. */
  bytes: Buffer
  sizeBytes: number
  isWhole: boolean
  flags: string[]
}

export interface PollOptions {
  now: Date
  /** How far back; the server goes by its own days. */
  days?: number
  signal?: AbortSignal
  /** Of silence of the server, and of each step; the bytes of a message may take ten times as long. */
  timeoutMs?: number
}

export interface PollResult {
  folders: PolledFolder[]
  taken: number
  /** `take` threw: the others were taken all the same. */
  failed: { path: string; uid: number; cause: unknown }[]
  isStopped: boolean
}

export interface PolledFolder {
  path: string
  folder: MailFolder
  uidValidity: number
  /** Everything up to this uid is taken; what failed, and all after it, is above. The place to go on from. */
  through: number
}

/** As much of a message that is too large as is read: its headers. */
const headBytes = 256 * 1024

/** The folder of ours that a folder there stands for. */
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

/** Folders without folders in them, and the inbox whatever is in it; not the one that holds all the others' mails again. */
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
 * Gives every message of the last days above what is known to `take`, per folder, oldest first. `known` is asked with the path
 * and UIDVALIDITY of a folder: a server that has numbered anew is read anew. A throw of `take` leaves that one out and goes on,
 * except a Stop, which ends the poll in good order. Throws MailboxFailed when the server refuses, hangs or breaks off, or
 * `signal` ends it; what was taken until then is taken, and the error has the places to go on from.
 */
export async function pollMailbox(
  settings: MailboxSettings,
  known: (path: string, uidValidity: number) => Promise<number>,
  take: (message: PolledMessage) => Promise<void>,
  { now, days = 10, signal, timeoutMs = 30_000 }: PollOptions,
): Promise<PollResult> {
  const client = await connection(settings, timeoutMs)
  const watched = createStepTimer(timeoutMs, signal, () => client.close())
  const result: PollResult = { folders: [], taken: 0, failed: [], isStopped: false }
  const since = new Date(now.getTime() - days * 86_400_000)
  const secrets = [settings.password, settings.username]

  async function pollFolder(entry: ListResponse): Promise<void> {
    const { path } = entry
    // Held, so that the connection is kept alive while `take` takes its time.
    const lock = await watched(client.getMailboxLock(path, { readOnly: true }))
    try {
      await pollSelected(entry)
    } finally {
      lock.release()
    }
  }

  async function pollSelected(entry: ListResponse): Promise<void> {
    const { path } = entry
    const uidValidity = Number(client.mailbox ? client.mailbox.uidValidity : 0)
    const last = await known(path, uidValidity)
    const folder = folderOf(path, entry.specialUse, entry.delimiter || '/')
    const polled: PolledFolder = { path, folder, uidValidity, through: last }
    result.folders.push(polled)
    // A range that begins after the last message means the last message.
    const found = (await watched(client.search({ since, uid: `${last + 1}:*` }, { uid: true }))) || []
    const uids = found.filter((uid) => uid > last).sort((one, other) => one - other)
    let isGapless = true
    for (const uid of uids) {
      const isDone = await pollMessage(polled, uid)
      isGapless &&= isDone
      if (isGapless) polled.through = uid
      if (result.isStopped) return
    }
  }

  /** Whether it need not come again. */
  async function pollMessage({ path, folder, uidValidity }: PolledFolder, uid: number): Promise<boolean> {
    const facts = await watched(client.fetchOne(String(uid), { size: true, flags: true }, { uid: true }))
    // Somebody has removed it in the meantime.
    if (!facts) return true
    const sizeBytes = facts.size ?? 0
    const isWhole = sizeBytes <= maxMailBytes
    // A large one may take long; silence is what the connection itself does not bear longer.
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
    // Taken is taken: whether the farewell is heard is of no interest.
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
  // Loaded by the first poll: few servers have a mailbox to read.
  const { ImapFlow } = await import('imapflow')
  const client = new ImapFlow({
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
    // A server that says a message is small and sends one without end.
    maxLiteralSize: maxMailBytes + 1024,
    maxResponseSize: maxMailBytes + 1024 * 1024,
  })
  // Whatever waits for the server hears of it; an error unhandled rejection to would end the process.
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
