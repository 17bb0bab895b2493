// ETags (DOMAIN 3.1): the version of a record, or the hash of a reply without a version, such as a
// page.
import { hash } from 'node:crypto'
import type { Context } from '../context.ts'
import { Problem } from '../errors.ts'

export const versionTag = (version: number): string => `"${version}"`

/** The tag of a reply without a version: the hash of its text. */
export const textTag = (text: string): string => `"${hash('sha256', text, 'base64url').slice(0, 22)}"`

const own = new WeakMap<object, string>()

/** Sets the ETag of a reply that has no version but can be changed with If-Match. */
export function withTag<R extends object>(reply: R, etag: string): R {
  own.set(reply, etag)
  return reply
}

/** The ETag of a reply body, or undefined for replies that have none (messages, mass results). */
export function etagOf(reply: unknown, text: string, isRead: boolean): string | undefined {
  if (typeof reply !== 'object' || reply === null || !('data' in reply)) return undefined
  const given = own.get(reply)
  if (given !== undefined) return given
  const { data } = reply as { data: unknown }
  if (typeof data === 'object' && data !== null && 'version' in data && typeof data.version === 'number')
    return versionTag(data.version)
  if (!isRead) return undefined
  return textTag(text)
}

/** The ETag of the compressed form of a reply. */
export const encodedTag = (etag: string, encoding: string): string => etag.replace(/"$/, `-${encoding}"`)

/** The tags of a header; those of compressed replies also without their ending. */
const tagsOf = (header: string): string[] =>
  header.split(',').flatMap((each) => {
    const tag = each.trim()
    return [tag, tag.replace(/-(?:br|gzip)"$/, '"')]
  })

export const matches = (header: string, etag: string): boolean =>
  header.trim() === '*' || tagsOf(header.replaceAll(/(^|,)\s*W\//g, '$1')).includes(etag)

/** Whether a record shows progress, which changes without its version. */
function isMoving(reply: unknown): boolean {
  const { data } = reply as { data?: { stats?: unknown } | null }
  const stats = Object.values(data?.stats ?? {})
  return stats.some((each) => each !== 0 && each !== null)
}

/**
 * Whether a GET with this ETag can be answered with 304. A version covers the record as shown by
 * its own path, but not a selection of its keys, progress, or the account, which shows the role's
 * permissions too.
 */
export function speaksForAll(
  etag: string,
  about: { path: string; query: Record<string, unknown>; reply: unknown },
): boolean {
  const isVersion = /^"\d+"$/.test(etag)
  const isWhole = about.path.includes('{id}') && about.query.fields === undefined && about.query.include === undefined
  return !isVersion || (isWhole && !isMoving(about.reply))
}

/** Throws 412 when the request carries an If-Match that does not name the record's version. */
export function checkIfMatch(ctx: Context, version: number): void {
  if (!isMatched(ctx, versionTag(version)))
    throw new Problem('version_mismatch', `The record is at version ${version} by now.`)
}

/** The same for a reply with an ETag but without a version. */
export function checkTag(ctx: Context, etag: string): void {
  if (!isMatched(ctx, etag)) throw new Problem('version_mismatch')
}

/** If-Match compares strongly: a weak tag never matches. */
function isMatched({ ifMatch }: Context, etag: string): boolean {
  if (ifMatch === null || ifMatch.trim() === '*') return true
  return tagsOf(ifMatch).includes(etag)
}
