// Polls all folders of a mailbox from the last stored position. After a crash, some
// e-mails are fetched again and recognized as duplicates by their Message-ID.
import type { Selectable } from 'kysely'
import type { DB } from '../../../db/tables.gen.ts'
import { type Context, now, systemContext } from '../../kernel/context.ts'
import { isVeto } from '../../kernel/write/write.ts'
import { firstPollStart, MailboxFailed, type PolledMessage, type PollStart, pollMailbox } from '../../mail/imap.ts'
import { parseMail, type ReceivedMail, UnreadableMail, unreadableMail } from '../../mail/parse/parse.ts'
import { configuredMailbox } from '../configuration/mailbox.ts'
import { receiveMail } from './receive.ts'

export interface PollResult {
  received: number
  duplicates: number
  /**
   * The number of e-mails that were skipped for good, because they are empty or a listener refused
   * them.
   */
  left: number
  /** The number of e-mails that could not be stored. The next poll fetches them again. */
  failed: number
  /** The reason why the poll is incomplete; null when it is complete. */
  failure: string | null
}

/**
 * Polls the mailbox and returns the counts. Reports errors of the mail server in `failure` instead
 * of throwing them.
 */
export async function pollEmails(ctx: Context, signal: AbortSignal): Promise<PollResult> {
  const result: PollResult = { received: 0, duplicates: 0, left: 0, failed: 0, failure: null }
  const settings = await configuredMailbox(ctx)
  const { log } = ctx.services
  if (typeof settings === 'string') {
    log.error({}, settings)
    return { ...result, failure: settings }
  }
  const account = `${settings.username}@${settings.host}:${settings.port}`
  const positions = await loadPositions(ctx, account)
  const behind = new Set<string>()
  async function take(message: PolledMessage): Promise<void> {
    const { path, uid, uidValidity } = message
    try {
      result[await storeMessage(ctx, message)]++
    } catch (error) {
      // The stored position stays before the failed e-mail, so that the next poll reads the folder
      // again from there.
      behind.add(path)
      log.error({ err: error, uid }, 'A mail of the mailbox could not be stored.')
      throw error
    }
    if (!behind.has(path)) await storePosition(ctx, account, { path, uidValidity, through: uid })
  }
  try {
    const polled = await pollMailbox(
      settings,
      async (path, validity) => startOf(ctx, positions, path, validity),
      take,
      { signal },
    )
    for (const folder of polled.folders) await storePosition(ctx, account, folder)
    result.failed = polled.failed.length
  } catch (error) {
    if (!(error instanceof MailboxFailed)) throw error
    if (!signal.aborted) log.error({ err: error }, 'The mailbox was not polled to its end.')
    result.failure = error.message
  }
  return result
}

/**
 * Stores one e-mail and returns the name of the counter to increase. Throws errors that a retry may
 * fix.
 */
async function storeMessage(
  { services }: Context,
  message: PolledMessage,
): Promise<'received' | 'duplicates' | 'left'> {
  const { bytes, folder, uid, isWhole, flags } = message
  try {
    // Each e-mail gets a new timestamp, because a poll may take long.
    const ctx = systemContext(services, 'inbound_mail')
    const { duplicate } = await receiveMail(ctx, await mailOf(message), {
      raw: isWhole ? bytes : null,
      folder,
      isSeen: flags.includes('\\Seen'),
    })
    return duplicate ? 'duplicates' : 'received'
  } catch (error) {
    const isFinal = error instanceof UnreadableMail || isVeto(error)
    if (!isFinal) throw error
    services.log.warn({ uid, err: error }, 'An e-mail was not stored and stays in the mailbox.')
    return 'left'
  }
}

/**
 * Parses an e-mail. An e-mail that is too large or cannot be parsed becomes an e-mail with a note.
 */
async function mailOf({ path, bytes, sizeBytes, isWhole }: PolledMessage): Promise<ReceivedMail> {
  if (bytes.length === 0) throw new UnreadableMail('The e-mail is empty.')
  if (isWhole) return parseMail(bytes, {}, { isMail: true })
  const sizeMiB = Math.ceil(sizeBytes / 1024 / 1024)
  return unreadableMail(
    { raw: bytes, fields: {} },
    `The e-mail has ${sizeMiB} MiB, but at most 30 MiB are read. It remains in the folder ${path.slice(0, 200)} of the mailbox.`,
  )
}

type Position = Pick<Selectable<DB['mailboxes']>, 'path' | 'uid_validity' | 'last_uid' | 'updated_at'>

const loadPositions = ({ db }: Context, account: string): Promise<Position[]> =>
  db
    .selectFrom('mailboxes')
    .select(['path', 'uid_validity', 'last_uid', 'updated_at'])
    .where('account', '=', account)
    .execute()

/**
 * Returns the start of the poll of a folder. A new folder, or one that the server has renumbered,
 * is read from the last poll, because the mailbox may have been unreachable since then.
 */
function startOf(ctx: Context, positions: readonly Position[], path: string, uidValidity: number): PollStart {
  const known = positions.find((position) => position.path === path)
  if (known?.uid_validity === String(uidValidity)) return { uid: known.last_uid }
  const first = firstPollStart(ctx.time)
  const times = (known ? [known] : positions).map(({ updated_at }) => new Date(updated_at).getTime())
  return times.length === 0 ? first : { since: new Date(Math.min(first.since.getTime(), Math.max(...times))) }
}

async function storePosition(
  ctx: Context,
  account: string,
  { path, uidValidity, through }: { path: string; uidValidity: number; through: number },
): Promise<void> {
  const place = { uid_validity: String(uidValidity), last_uid: through, updated_at: now(ctx) }
  await ctx.db
    .insertInto('mailboxes')
    .values({ account, path, ...place, created_at: now(ctx) })
    .onConflict((conflict) => conflict.columns(['account', 'path']).doUpdateSet(place))
    .execute()
}
