// Renders the reply of a handler as JSON, with its headers.
import type { Call, Input } from '../contract/call.ts'
import type { ReplyChecker } from '../contract/output/reply-check.ts'
import type { Answered } from '../contract/routes.ts'
import type { Context } from '../kernel/context.ts'
import { withParameters } from '../kernel/query/query-string.ts'
import { selectFields } from '../kernel/resource/references.ts'
import { etagOf } from '../kernel/write/etag.ts'

export const jsonType = 'application/json'

export function header(call: Call, name: string): string | undefined {
  const value = call.headers[name]
  return Array.isArray(value) ? value.join(', ') : value
}

export function renderJson(
  ctx: Context,
  call: Call,
  input: Input,
  reply: unknown,
  { status, checker }: { status: number; checker: ReplyChecker },
): Answered {
  const { fact } = call
  const names = input.query.fields as string[] | undefined
  const shown = names ? selectFields(reply, names, checker.keys(fact)) : reply
  if (shown === undefined) return { status: fact.status, headers: {}, body: undefined, mediaType: jsonType }
  const body = JSON.stringify(shown)
  const headers: Record<string, string> = {}
  if (ctx.dryRun) headers['accord-dry-run'] = 'true'
  const etag = etagOf(reply, body, fact.method === 'get')
  if (etag !== undefined) headers.etag = etag
  const link = linkHeader(reply) ?? nextOfFeed(ctx, call, reply)
  if (link) headers.link = link
  if (fact.location && !ctx.dryRun)
    headers.location = `${ctx.baseUrl}${call.path}/${(reply as { data: { id: number } }).data.id}`
  return { status, headers, body, mediaType: jsonType }
}

/** Returns the Link header of a list (RFC 8288). */
function linkHeader(reply: unknown): string | undefined {
  const links = (reply as { links?: Record<string, string | null> } | null)?.links
  if (!links) return undefined
  return Object.entries(links)
    .filter(([, url]) => url !== null)
    .map(([rel, url]) => `<${url}>; rel="${rel}"`)
    .join(', ')
}

/** Returns the Link header of a feed page, or undefined after the last page. */
function nextOfFeed({ baseUrl }: Context, { path, query }: Call, reply: unknown): string | undefined {
  const { next_after: after, has_more: hasMore } = (reply as { meta?: FeedMeta } | null)?.meta ?? {}
  if (after === undefined || !hasMore) return undefined
  return `<${baseUrl}${path}?${withParameters(query, { after: String(after) })}>; rel="next"`
}

interface FeedMeta {
  next_after?: number
  has_more?: boolean
}
