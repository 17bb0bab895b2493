// Links to files that work without a token for five minutes. The pictures in rendered e-mails use
// such links, because browsers fetch pictures without a token. The signature covers the file id and
// the expiry time, so neither can be changed.
import { operations } from '../../contract/operations.gen.ts'
import { pathTo } from '../../contract/paths.ts'
import { constantTimeEquals } from '../../kernel/auth/secrets.ts'
import type { Context, Services } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'

const validSeconds = 5 * 60

const secondsOf = (ctx: Context): number => Math.floor(ctx.time.getTime() / 1000)

export const signatureOf = ({ encryption }: Services, id: number, expires: number): string =>
  encryption.hmac(`file:${id}:${expires}`)

/**
 * Returns a signed link to a file. Use the link only in HTML shown to a caller who sees the file.
 */
export function signedUrl(ctx: Context, id: number): string {
  const expires = secondsOf(ctx) + validSeconds
  const path = pathTo(operations.downloadSignedFile, id)
  return `${ctx.baseUrl}${path}?expires=${expires}&signature=${signatureOf(ctx.services, id, expires)}`
}

/** Throws 403 for an invalid or expired link. */
export function checkSignature(ctx: Context, id: number, sent: { expires: number; signature: string }): void {
  if (!constantTimeEquals(sent.signature, signatureOf(ctx.services, id, sent.expires)))
    throw new Problem('forbidden', 'This link is not valid.')
  if (sent.expires < secondsOf(ctx)) throw new Problem('forbidden', 'This link has expired; read the record again.')
}
