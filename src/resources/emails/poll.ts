// Fetches the mails of a mailbox (DOMAIN 14.4): all its folders, from where the last time ended. What was taken and not marked, such
// as by a crash, is taken again and known by its Message-ID.
import { type Context, now, systemContext } from '../../kernel/context.ts'
import { isVeto } from '../../kernel/write/write.ts'
import { MailboxFailed, type PolledMessage, pollMailbox } from '../../mail/imap.ts'
import { parseMail, type ReceivedMail, UnreadableMail, unreadableMail } from '../../mail/parse/parse.ts'
import { mailboxOf } from '../configuration/mailbox.ts'
import { receive } from './receive.ts'

export interface Polled {
  received: number
  duplicates: number
  /** Neither stored nor asked for again: empty, or refused by a listener. */
  left: number
  /** To be tried again. */
  failed: number
  /** Why it is not known whether these are all; null when they are. */
  failure: string | null
}

/** Never throws for what the mailbox does. */
export async function poll(ctx: Context, signal: AbortSignal): Promise<Polled> {
  const result: Polled = { received: 0, duplicates: 0, left: 0, failed: 0, failure: null }
  const settings = await mailboxOf(ctx)
  const { log } = ctx.services
  if (typeof settings === 'string') {
    log.error({}, settings)
    return { ...result, failure: settings }
  }
  const account = `${settings.username}@${settings.host}:${settings.port}`
  const behind = new Set<string>()
  async function take(message: PolledMessage): Promise<void> {
    const { path, uid, uidValidity } = message
    try {
      result[await taken(ctx, message)]++
    } catch (error) {
      // Whatever comes behind it in the folder is read again, until it can be stored.
      behind.add(path)
      log.error({ err: error, uid }, 'A mail of the mailbox could not be stored.')
      throw error
    }
    if (!behind.has(path)) await mark(ctx, account, { path, uidValidity, through: uid })
  }
  try {
    const polled = await pollMailbox(settings, (path, validity) => marked(ctx, account, path, validity), take, {
      now: ctx.time,
      signal,
    })
    for (const folder of polled.folders) await mark(ctx, account, folder)
    result.failed = polled.failed.length
  } catch (error) {
    if (!(error instanceof MailboxFailed)) throw error
    if (!signal.aborted) log.error({ err: error }, 'The mailbox was not polled to its end.')
    result.failure = error.message
  }
  return result
}

/** What became of it. Throws for what another try may store. */
async function taken({ services }: Context, message: PolledMessage): Promise<'received' | 'duplicates' | 'left'> {
  const { bytes, folder, uid, isWhole, flags } = message
  try {
    // Each mail at its own time: a poll may be long.
    const ctx = systemContext(services, 'inbound_mail')
    const { duplicate } = await receive(ctx, await mailOf(message), {
      raw: isWhole ? bytes : null,
      folder,
      isSeen: flags.includes('\\Seen'),
    })
    return duplicate ? 'duplicates' : 'received'
  } catch (error) {
    const isFinal = error instanceof UnreadableMail || isVeto(error)
    if (!isFinal) throw error
    services.log.warn({ uid, err: error }, 'A mail of the mailbox is left there.')
    return 'left'
  }
}

/** Every message of a mailbox becomes an e-mail. One that cannot be parsed is shown with a note. */
async function mailOf({ path, bytes, sizeBytes, isWhole }: PolledMessage): Promise<ReceivedMail> {
  if (bytes.length === 0) throw new UnreadableMail('The e-mail is empty.')
  if (isWhole) return parseMail(bytes, {}, { isMail: true })
  const sizeMiB = Math.ceil(sizeBytes / 1024 / 1024)
  return unreadableMail(
    { raw: bytes, fields: {} },
    `The e-mail has ${sizeMiB} MiB, and at most 30 are read. It is in the mailbox, in the folder ${path.slice(0, 200)}.`,
  )
}

/** Up to which message a folder was read; from its beginning when the server has numbered anew. */
async function marked({ db }: Context, account: string, path: string, uidValidity: number): Promise<number> {
  const row = await db
    .selectFrom('mailboxes')
    .select(['uid_validity', 'last_uid'])
    .where('account', '=', account)
    .where('path', '=', path)
    .executeTakeFirst()
  return row?.uid_validity === String(uidValidity) ? row.last_uid : 0
}

async function mark(
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
