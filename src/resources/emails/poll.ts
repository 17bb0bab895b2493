// Fetches the mails of a mailbox (DOMAIN 14.4): all its folders, from where the last time ended. What was taken and not marked, such
// as by a crash, is taken again and known by its Message-ID.
import { type Context, now, systemContext } from '../../kernel/context.ts'
import { SealBroken } from '../../kernel/seal.ts'
import { isVeto } from '../../kernel/write.ts'
import { MailboxFailed, type MailboxSettings, type PolledMessage, pollMailbox } from '../../mail/imap.ts'
import { parseMail, Unreadable } from '../../mail/parse.ts'
import { secretOf, storedValues } from '../configuration/values.ts'
import { receive } from './receive.ts'

export interface Polled {
  received: number
  duplicates: number
  /** Neither stored nor asked for again: no mails, too large, or refused by a listener. */
  left: number
  /** To be tried again. */
  failed: number
  /** Why it is not known whether these are all; null when they are. */
  failure: string | null
}

/** The settings in the configuration over those of the environment; null while no mailbox is named. */
export async function mailboxOf(ctx: Context): Promise<MailboxSettings | null> {
  const { imap } = ctx.services.config
  const stored = await storedValues(ctx)
  const setting = <T>(name: string, initial: T): T => (stored.get(`email.imap.account.${name}`) as T) ?? initial
  const host = setting('host', imap.host)
  const username = setting('username', imap.username)
  const password = (await secretOf(ctx, 'email.imap.account.password')) ?? imap.password
  if (!host || !username || password === null) return null
  return {
    host,
    username,
    password,
    port: setting('port', imap.port),
    encryption: setting('encryption', imap.encryption),
    validateCert: setting('validate_cert', imap.validateCert),
  }
}

/** The settings, or why the password among them cannot be read. */
async function readableMailbox(ctx: Context): Promise<MailboxSettings | string | null> {
  try {
    return await mailboxOf(ctx)
  } catch (error) {
    if (error instanceof SealBroken)
      return 'The password of the mailbox cannot be read: it was stored with another ACCORD_SECRET. Set it again.'
    throw error
  }
}

/** Never throws for what the mailbox does. */
export async function poll(ctx: Context, signal: AbortSignal): Promise<Polled> {
  const result: Polled = { received: 0, duplicates: 0, left: 0, failed: 0, failure: null }
  const settings = await readableMailbox(ctx)
  const { log } = ctx.services
  if (settings === null || typeof settings === 'string') {
    const failure = settings ?? 'No mailbox is set: host, user name and password are needed.'
    log.error({}, failure)
    return { ...result, failure }
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
    for (const { uid, sizeBytes } of polled.skipped) log.warn({ uid, sizeBytes }, 'A mail is too large.')
    result.left += polled.skipped.length
    result.failed = polled.failed.length
  } catch (error) {
    if (!(error instanceof MailboxFailed)) throw error
    if (!signal.aborted) log.error({ err: error }, 'The mailbox was not polled to its end.')
    result.failure = error.message
  }
  return result
}

/** What became of it. Throws for what another try may store. */
async function taken(
  { services }: Context,
  { bytes, folder, uid }: PolledMessage,
): Promise<'received' | 'duplicates' | 'left'> {
  try {
    // Each mail at its own time: a poll may be long.
    const ctx = systemContext(services, 'inbound_mail')
    const { duplicate } = await receive(ctx, await parseMail(bytes), { raw: bytes, folder })
    return duplicate ? 'duplicates' : 'received'
  } catch (error) {
    const isFinal = error instanceof Unreadable || isVeto(error)
    if (!isFinal) throw error
    services.log.warn({ uid, err: error }, 'A mail of the mailbox is left there.')
    return 'left'
  }
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
