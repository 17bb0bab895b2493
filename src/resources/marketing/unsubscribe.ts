// The link to unsubscribe in every mail of a campaign (RFC 8058). It carries the address, sealed, so that it works without login,
// for ever, and when the campaign is gone. Opening it changes nothing: mail programs open links on their own.
import { operations } from '../../contract/operations.gen.ts'
import { pathTo } from '../../contract/paths.ts'
import { countCall } from '../../kernel/auth/attempt-limits.ts'
import type { Context, Services } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import { download } from '../../kernel/files/download.ts'
import type { Gates, Handler } from '../../kernel/handler.ts'
import { escapeHtml, sourceHash } from '../../kernel/values/format.ts'
import { suppress } from './suppressions.ts'

/** What else is sealed with the same key is no token. */
const purpose = 'unsubscribe:'

export const unsubscribeToken = ({ seal }: Pick<Services, 'seal'>, address: string): string =>
  Buffer.from(seal.encrypt(purpose + address), 'base64').toString('base64url')

export const unsubscribeUrl = (ctx: Context, address: string): string =>
  urlWith(ctx, unsubscribeToken(ctx.services, address))

/** Looks like one and unsubscribes nobody: for previews, whose reader is not the recipient. */
export const exampleUrl = (ctx: Context): string => urlWith(ctx, 'example')

const urlWith = (ctx: Context, token: string): string => `${ctx.baseUrl}${pathTo(operations.unsubscribe, token)}`

/** The address a token was made for. Throws 404 for any other text; the tag of the seal is compared in constant time. */
function addressIn({ services: { seal } }: Context, token: string): string {
  const bytes = Buffer.from(token, 'base64url')
  // There is one way to write a token: what decoding would pass over makes it another one.
  const text = bytes.toString('base64url') === token ? opened(seal, bytes.toString('base64')) : undefined
  if (!text?.startsWith(purpose)) throw new Problem('not_found', 'This link is not one that was given out.')
  return text.slice(purpose.length)
}

function opened(seal: Services['seal'], sealed: string): string | undefined {
  try {
    return seal.decrypt(sealed)
  } catch {
    return undefined
  }
}

const style = `
:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}
body{margin:0;min-height:100vh;display:grid;place-items:center;background:Canvas;color:CanvasText}
main{width:min(28rem,90vw)}h1{font-size:1.5rem;margin:0 0 1rem}strong{overflow-wrap:anywhere}
button{margin-top:1rem;padding:.6rem 1.2rem;font:inherit;font-weight:600;color:#fff;background:#0b6fa8;border:0;border-radius:.25rem;cursor:pointer}`

/** The form posts to the page's own address, and says what mail programs say. */
const question = (address: string, app: string): string => `
<h1>Unsubscribe</h1>
<p>Should <strong>${address}</strong> get no more mailings from ${app}?</p>
<form method="post"><input type="hidden" name="List-Unsubscribe" value="One-Click"><button type="submit">Unsubscribe</button></form>`

const answer = (address: string, app: string): string => `
<h1>You are unsubscribed</h1>
<p><strong>${address}</strong> gets no more mailings from ${app}.</p>`

function page({ services: { config } }: Context, address: string, main: typeof question) {
  const app = escapeHtml(config.appName)
  const body = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="robots" content="noindex, nofollow"><title>Unsubscribe · ${app}</title><style>${style}</style></head>
<body><main>${main(escapeHtml(address), app)}
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

/** Calls a minute from one address: a mail service calls for many of its people. */
const maxCalls = 120
const minuteMs = 60_000

/** Before the body is read: only with a link that was given out, and not too often. */
async function admit(ctx: Context): Promise<void> {
  addressIn(ctx, ctx.path.split('/').at(-1) ?? '')
  await countCall(ctx, 'unsubscribe', maxCalls, minuteMs)
}

export const gates: Gates = { unsubscribe: admit }

export const getUnsubscribePage: Handler<'getUnsubscribePage'> = async (ctx, { params }) =>
  page(ctx, addressIn(ctx, params.token), question)

export const unsubscribe: Handler<'unsubscribe'> = async (ctx, { params }) => {
  const address = addressIn(ctx, params.token)
  await suppress(ctx, { address, reason: 'unsubscribed' })
  return page(ctx, address, answer)
}
