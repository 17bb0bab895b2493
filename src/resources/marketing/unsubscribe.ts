// The unsubscribe link of every campaign e-mail (RFC 8058). The link contains the encrypted
// address. So the link needs no login, never expires, and works after the campaign is deleted.
// Opening the link changes nothing, because mail programs open links automatically.
import { operations } from '../../contract/operations.gen.ts'
import { pathTo } from '../../contract/paths.ts'
import { attempt } from '../../kernel/auth/attempts.ts'
import type { Context, Services } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import { download } from '../../kernel/files/download.ts'
import type { Handler, PublicGuards } from '../../kernel/handler.ts'
import { escapeHtml, sourceHash } from '../../kernel/values/format.ts'
import { isOfListener, transaction } from '../../kernel/write/write.ts'
import type { TextKey, Texts } from '../../texts/texts.ts'
import { subscribersWith } from '../persons/consent.ts'
import { textsOfAddress } from '../persons/language.ts'
import { persons } from '../persons/resource.ts'
import { suppress } from './suppressions.ts'

/**
 * The prefix that distinguishes an unsubscribe token from other texts encrypted with the same key.
 */
const purpose = 'unsubscribe:'

export const unsubscribeToken = ({ encryption }: Pick<Services, 'encryption'>, address: string): string =>
  Buffer.from(encryption.encrypt(purpose + address), 'base64').toString('base64url')

export const unsubscribeUrl = (ctx: Context, address: string): string =>
  urlWith(ctx, unsubscribeToken(ctx.services, address))

/**
 * Returns an unsubscribe link without effect, for previews. The reader of a preview is not the
 * recipient and must not unsubscribe the recipient.
 */
export const exampleUrl = (ctx: Context): string => urlWith(ctx, 'example')

const urlWith = (ctx: Context, token: string): string => `${ctx.baseUrl}${pathTo(operations.unsubscribe, token)}`

/**
 * Returns the address in an unsubscribe token. Throws 404 for any other text. Decryption compares
 * the authentication tag in constant time.
 */
function addressIn({ services: { encryption } }: Context, token: string): string {
  const bytes = Buffer.from(token, 'base64url')
  // Only the canonical encoding is accepted, because base64 decoding ignores extra characters.
  const text = bytes.toString('base64url') === token ? opened(encryption, bytes.toString('base64')) : undefined
  if (!text?.startsWith(purpose)) throw new Problem('not_found', 'This unsubscribe link is not valid.')
  return text.slice(purpose.length)
}

function opened(encryption: Services['encryption'], sealed: string): string | undefined {
  try {
    return encryption.decrypt(sealed)
  } catch {
    return undefined
  }
}

const style = `
:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}
body{margin:0;min-height:100vh;display:grid;place-items:center;background:Canvas;color:CanvasText}
main{width:min(28rem,90vw)}h1{font-size:1.5rem;margin:0 0 1rem}strong{overflow-wrap:anywhere}
button{margin-top:1rem;padding:.6rem 1.2rem;font:inherit;font-weight:600;color:#fff;background:#0b6fa8;border:0;border-radius:.25rem;cursor:pointer}`

/** Returns the content of the page. `sentence` returns a text with the address as HTML. */
type Main = (say: Texts['say'], sentence: (key: TextKey) => string) => string

/** Stands for the address in a text, until the text is HTML. */
const mark = '\u0001'

/**
 * Returns the page content that asks for confirmation. The form posts to the URL of the page, with
 * the request body that mail programs send (RFC 8058).
 */
const question: Main = (say, sentence) => `
<h1>${escapeHtml(say('unsubscribe.title'))}</h1>
<p>${sentence('unsubscribe.question')}</p>
<form method="post"><input type="hidden" name="List-Unsubscribe" value="One-Click"><button type="submit">${escapeHtml(say('unsubscribe.title'))}</button></form>`

const answer: Main = (say, sentence) => `
<h1>${escapeHtml(say('unsubscribe.done_title'))}</h1>
<p>${sentence('unsubscribe.done')}</p>`

async function page(ctx: Context, address: string, main: Main) {
  const { say, language, direction } = await textsOfAddress(ctx, address)
  const app = ctx.services.config.appName
  const sentence = (key: TextKey): string => {
    const [before = '', after = ''] = say(key, { address: mark, app }).split(mark)
    return `${escapeHtml(before)}<bdi><strong>${escapeHtml(address)}</strong></bdi>${escapeHtml(after)}`
  }
  const body = `<!doctype html>
<html lang="${language}" dir="${direction}">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="robots" content="noindex, nofollow"><title>${escapeHtml(`${say('unsubscribe.title')} · ${app}`)}</title><style>${style}</style></head>
<body><main>${main(say, sentence)}
</main></body>
</html>
`
  return download({
    mediaType: 'text/html; charset=utf-8',
    body,
    headers: {
      'cache-control': 'no-store',
      'x-robots-tag': 'noindex, nofollow',
      'x-frame-options': 'DENY',
      'content-security-policy': `default-src 'none'; style-src ${sourceHash(style)}; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
    },
  })
}

/**
 * The maximum number of calls per minute from one IP address. The limit is high, because a mail
 * service unsubscribes many recipients from one IP address.
 */
const limit = { scope: 'unsubscribe', most: 120, windowMs: 60_000 }

/**
 * Throws 404 for an invalid link, and 429 beyond the rate limit. Runs before the request body is
 * read.
 */
async function admit(ctx: Context): Promise<void> {
  addressIn(ctx, ctx.path.split('/').at(-1) ?? '')
  await attempt(ctx, limit)
}

export const publicGuards: PublicGuards = { unsubscribe: admit }

export const getUnsubscribePage: Handler<'getUnsubscribePage'> = async (ctx, { params }) =>
  page(ctx, addressIn(ctx, params.token), question)

export const unsubscribe: Handler<'unsubscribe'> = async (ctx, { params }) => {
  const address = addressIn(ctx, params.token)
  await transaction(ctx, async (ctx) => {
    await suppress(ctx, { address, reason: 'unsubscribed' })
    await withdrawConsent(ctx, address)
  })
  return page(ctx, address, answer)
}

/**
 * Sets `subscribed` of all persons with the address to false. When a listener refuses the change of
 * a person, the address is still suppressed.
 */
async function withdrawConsent(ctx: Context, address: string): Promise<void> {
  for (const id of await subscribersWith(ctx, address)) {
    try {
      await persons.update({ ...ctx, ifMatch: null }, id, { subscribed: false })
    } catch (cause) {
      if (!isOfListener(cause)) throw cause
      ctx.services.log.warn({ person: id, err: cause }, 'A listener refused the withdrawal of a consent, or failed.')
    }
  }
}
