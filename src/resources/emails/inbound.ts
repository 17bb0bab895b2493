// Handlers that receive e-mails from a mail service by HTTP, and that serve the
// original bytes of an e-mail. The shared secret is checked before the form is read.

import { attempt } from '../../kernel/auth/attempts.ts'
import { inboundSecretOf } from '../../kernel/auth/encryption.ts'
import { constantTimeEquals } from '../../kernel/auth/secrets.ts'
import type { Context } from '../../kernel/context.ts'
import { notFound, Problem } from '../../kernel/errors.ts'
import type { Handler, Handlers, PublicGuards } from '../../kernel/handler.ts'
import { MailReaderBusy, UnreadableMail } from '../../mail/parse/parse.ts'
import type { PostedFile } from '../../mail/sendgrid.ts'
import { downloadBytes } from '../files/handlers.ts'
import { receiveMail } from './receive.ts'
import { emails } from './resource.ts'

/**
 * The maximum number of calls without the secret, per minute and IP address. Such calls are
 * accepted only when `inboundOpen` is set.
 */
const limit = { scope: 'inbound-parse', most: 60, windowMs: 60_000 }
/**
 * The maximum number of e-mails that wait to be parsed. Further calls get a 503, and the mail
 * service retries later.
 */
const maxWaiting = 4

/**
 * Admits calls with the secret, or all calls when the route is open. Throws 404 when the server
 * polls a mailbox instead, 401 for a wrong secret, and 429 for too many calls.
 */
async function checkSecret(ctx: Context): Promise<void> {
  const { mailReceiver, inboundOpen } = ctx.services.config
  if (mailReceiver !== 'sendgrid') throw new Problem('not_found', 'E-mails are fetched from a mailbox here.')
  if (hasSecret(ctx)) return
  if (inboundOpen) return attempt(ctx, limit)
  // The reply has no WWW-Authenticate header, so that a mail service is not asked to log in.
  throw new Problem(
    'unauthenticated',
    'The secret of inbound mail is missing or wrong. `accord install` prints the URL with the secret.',
  )
}

function hasSecret(ctx: Context): boolean {
  const { config, encryption } = ctx.services
  const expected = encryption.hmac(inboundSecretOf(config.inboundSecret, encryption))
  // All secrets in the request are compared, even after a match, so that the response time does not
  // reveal a match.
  return sentSecrets(ctx).filter((each) => constantTimeEquals(encryption.hmac(each), expected)).length > 0
}

function sentSecrets({ headers, query }: Context): string[] {
  const basic = /^basic\s+(\S+)$/i.exec(String(headers.authorization ?? ''))?.[1] ?? ''
  const [, ...password] = Buffer.from(basic, 'base64').toString().split(':')
  const named = [new URLSearchParams(query).get('secret'), headers['x-inbound-secret'], password.join(':')]
  return named.filter((each): each is string => typeof each === 'string' && each !== '')
}

/** Checks that run before the body is read. */
export const publicGuards: PublicGuards = { receiveEmail: checkSecret }

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
  const { mail, raw } = await asProblems(() => fromSendgrid(texts, files, { maxWaiting }))
  const { id, duplicate, parent_id, person_id } = await receiveMail(ctx, mail, { raw })
  // Without the secret, all calls get the same reply. Ids would reveal which addresses and e-mails
  // exist.
  if (!hasSecret(ctx)) return { message: 'E-mail received.' }
  return {
    data: { id, duplicate, parent_id, person_id },
    message: duplicate ? 'The e-mail was here before.' : 'E-mail received.',
  }
}

async function asProblems<T>(work: () => Promise<T>): Promise<T> {
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
  return downloadBytes(ctx, { ...file, content_type: 'message/rfc822' })
}

export const handlers = { receiveEmail, getEmailRaw } satisfies Partial<Handlers>
