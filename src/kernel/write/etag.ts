// Computes and compares ETags. The ETag of a record is its version. The ETag of a
// reply without a version, such as a page, is a hash.
import { hash } from 'node:crypto'
import type { Context } from '../context.ts'
import { Problem } from '../errors.ts'

export const versionTag = (version: number): string => `"${version}"`

/** Returns the ETag of a reply without a version: a hash of its text. */
export const textTag = (text: string): string => `"${hash('sha256', text, 'base64url').slice(0, 22)}"`

const givenTag = Symbol('ETag')
const ownerVersion = Symbol('version of the owner')

/** The fields of a reply from which its ETag follows. They are not in its JSON. */
interface TagFields {
  [givenTag]?: string
  [ownerVersion]?: number
}

/**
 * Adds the version of a record to the ETag of a list of its parts, so that callers can send this
 * ETag in the If-Match of a change. Returns the reply.
 */
export const withVersionOfOwner = <R extends object>(reply: R, version: number): R & TagFields => ({
  ...reply,
  [ownerVersion]: version,
})

/**
 * Sets the ETag of a reply without a version, so that callers can send it in If-Match. Returns the
 * reply.
 */
export const withTag = <R extends object>(reply: R, etag: string): R & TagFields => ({ ...reply, [givenTag]: etag })

/**
 * Returns the ETag of a reply; undefined for a reply without `data`, such as a message or a mass
 * result. With `isRead`, the ETag of a reply without a version is a hash of its text.
 */
export function etagOf(reply: unknown, text: string, isRead: boolean): string | undefined {
  if (typeof reply !== 'object' || reply === null || !('data' in reply)) return undefined
  const { data, [givenTag]: given, [ownerVersion]: version } = reply as { data: unknown } & TagFields
  if (given !== undefined) return given
  if (typeof data === 'object' && data !== null && 'version' in data && typeof data.version === 'number')
    return versionTag(data.version)
  if (!isRead) return undefined
  return version === undefined ? textTag(text) : textTag(text).replace('"', `"${version}.`)
}

/** Returns the ETag of the compressed reply, which has the encoding as a suffix. */
export const encodedTag = (etag: string, encoding: string): string => etag.replace(/"$/, `-${encoding}"`)

/**
 * Returns the ETags in a header. The ETag of a compressed reply also counts without the suffix of
 * the encoding. The ETag of a list of parts also counts as the version of its record.
 */
const tagsOf = (header: string): string[] =>
  header.split(',').flatMap((each) => {
    const tag = each.trim()
    const plain = tag.replace(/-(?:br|gzip)"$/, '"')
    return [tag, plain, plain.replace(/\.[\w-]{22}"$/, '"')]
  })

export const matches = (header: string, etag: string): boolean =>
  header.trim() === '*' || tagsOf(header.replaceAll(/(^|,)\s*W\//g, '$1')).includes(etag)

/**
 * Returns whether a record has progress metrics (`stats`) other than 0 and null. Such metrics
 * change without raising the version.
 */
function isMoving(reply: unknown): boolean {
  const { data } = reply as { data?: { stats?: unknown } | null }
  const stats = Object.values(data?.stats ?? {})
  return stats.some((each) => each !== 0 && each !== null)
}

/**
 * Returns whether a GET with this ETag may be answered with 304. A version identifies the whole
 * record at its own path. It does not identify a selection of its keys, its progress metrics, or
 * the account, whose reply also contains the permissions of the role.
 */
export function speaksForAll(
  etag: string,
  about: { path: string; query: Record<string, unknown>; reply: unknown },
): boolean {
  const isVersion = /^"\d+"$/.test(etag)
  const isWhole = about.path.includes('{id}') && about.query.fields === undefined && about.query.include === undefined
  return !isVersion || (isWhole && !isMoving(about.reply))
}

/** Throws 412 when the request has an If-Match header that does not name the record's version. */
export function checkIfMatch(ctx: Context, version: number): void {
  if (!isMatched(ctx, versionTag(version)))
    throw new Problem('version_mismatch', `The record is at version ${version} by now.`)
}

/**
 * Throws 412 when the request has an If-Match header that does not contain `etag`. For replies that
 * have an ETag but no version.
 */
export function checkTag(ctx: Context, etag: string): void {
  if (!isMatched(ctx, etag)) throw new Problem('version_mismatch')
}

/**
 * Returns whether If-Match allows the change. A weak ETag matches too, because proxies that
 * compress replies make the ETags of this server weak.
 */
function isMatched({ ifMatch }: Context, etag: string): boolean {
  return ifMatch === null || matches(ifMatch, etag)
}
