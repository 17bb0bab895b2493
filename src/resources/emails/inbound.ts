// E-mails that a mail service posts (DOMAIN 14.4), and the bytes of what was received. Who may post is found out before the form
// is read.

import { countCall } from '../../kernel/auth/attempt-limits.ts'
import { inboundSecretOf } from '../../kernel/auth/encryption.ts'
import { constantTimeEquals } from '../../kernel/auth/secrets.ts'
import type { Context } from '../../kernel/context.ts'
import { notFound, Problem } from '../../kernel/errors.ts'
import type { Gates, Handler, Handlers } from '../../kernel/handler.ts'
import { MailReaderBusy, UnreadableMail } from '../../mail/parse/parse.ts'
import type { PostedFile } from '../../mail/sendgrid.ts'
import { bytesOf } from '../files/handlers.ts'
import { receive } from './receive.ts'
import { emails } from './resource.ts'

/** Calls a minute from one address without the secret, where the route is open. */
const maxCalls = 60
const minuteMs = 60_000
/** E-mails that may be waiting to be read; a mail service tries again after a 503. */
const maxWaiting = 4

/** Refuses a call without the secret, unless the route is open. Throws 404 where mail is fetched, 401 and 429. */
async function admit(ctx: Context): Promise<void> {
  const { mailReceiver, inboundOpen } = ctx.services.config
  if (mailReceiver !== 'sendgrid') throw new Problem('not_found', 'E-mails are fetched from a mailbox here.')
  if (hasSecret(ctx)) return
  if (inboundOpen) return countCall(ctx, 'inbound-parse', maxCalls, minuteMs)
  // Without WWW-Authenticate: a mail service must not be shown a page to sign in.
  throw new Problem(
    'unauthenticated',
    'The secret of inbound mail is missing or wrong. `accord install` prints the address that has it.',
  )
}

function hasSecret(ctx: Context): boolean {
  const { config, seal } = ctx.services
  const expected = seal.hmac(inboundSecretOf(config.inboundSecret, seal))
  // Every secret is compared, so that the time does not tell which one is right.
  return sentSecrets(ctx).filter((each) => constantTimeEquals(seal.hmac(each), expected)).length > 0
}

function sentSecrets({ headers, query }: Context): string[] {
  const basic = /^basic\s+(\S+)$/i.exec(String(headers.authorization ?? ''))?.[1] ?? ''
  const [, ...password] = Buffer.from(basic, 'base64').toString().split(':')
  const named = [new URLSearchParams(query).get('secret'), headers['x-inbound-secret'], password.join(':')]
  return named.filter((each): each is string => typeof each === 'string' && each !== '')
}

/** What refuses a call before its body is read. */
export const gates: Gates = { receiveEmail: admit }

const isFile = (field: string): boolean => field === 'email' || /^attachment\d+$/.test(field)

const receiveEmail: Handler<'receiveEmail'> = async (ctx, { body }) => {
  const { readSendgridForm: fromSendgrid } = await import('../../mail/sendgrid.ts')
  const texts: Record<string, Uint8Array> = {}
  const files: PostedFile[] = []
  for (const [field, sent] of Object.entries(body)) {
    if (typeof sent !== 'string') continue
    const upload = isFile(field) ? ctx.uploads?.files.get(sent) : undefined
    const bytes = upload ? await ctx.services.files.bytesOf(upload) : Buffer.from(sent, 'latin1')
    if (isFile(field) && field !== 'email')
      files.push({ field, name: upload?.name ?? field, contentType: upload?.contentType ?? '', bytes })
    else texts[field] = bytes
  }
  const { mail, raw } = await reading(() => fromSendgrid(texts, files, { maxWaiting }))
  const { id, duplicate, parent_id, person_id } = await receive(ctx, mail, { raw })
  // A stranger gets the same bytes for every mail: ids would tell which addresses and messages are known.
  if (!hasSecret(ctx)) return { message: 'E-mail received.' }
  return {
    data: { id, duplicate, parent_id, person_id },
    message: duplicate ? 'The e-mail was here before.' : 'E-mail received.',
  }
}

async function reading<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    if (cause instanceof UnreadableMail) throw new Problem('malformed_request', cause.message, { cause })
    if (cause instanceof MailReaderBusy)
      throw new Problem('unavailable', cause.message, { cause, headers: { 'retry-after': '10' } })
    throw cause
  }
}

const getEmailRaw: Handler<'getEmailRaw'> = async (ctx, { params: { id } }) => {
  await emails.assertVisible(ctx, id)
  const file = await ctx.db
    .selectFrom('emails')
    .innerJoin('files', 'files.id', 'emails.raw_file_id')
    .select(['files.id', 'files.name', 'files.sha256'])
    .where('emails.id', '=', id)
    .executeTakeFirst()
  if (!file) throw notFound('e-mail with its original bytes', id)
  return bytesOf(ctx, { ...file, content_type: 'message/rfc822' })
}

export const handlers = { receiveEmail, getEmailRaw } satisfies Partial<Handlers>
