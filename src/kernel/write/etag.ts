// Computes and compares ETags. The ETag of a GET identifies the bytes of the reply before their
// compression: the version of the record, if it has one, and a hash (RFC 9110, 8.8.3).
import { hash } from 'node:crypto'
import type { Context } from '../context.ts'
import { Problem } from '../errors.ts'

const digest = (bytes: string | Buffer): string => hash('sha256', bytes, 'base64url').slice(0, 22)

/**
 * Returns the ETag of a written record. Without a hash it matches no GET, because the reply to a
 * write is not the representation that a GET returns (RFC 9110, 9.3.4).
 */
export const versionTag = (version: number): string => `"${version}"`

/** Returns the ETag of bytes. With a version, If-Match accepts it for that version of a record. */
export const byteTag = (bytes: string | Buffer, version?: number): string =>
  version === undefined ? `"${digest(bytes)}"` : `"${version}-${digest(bytes)}"`

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
 * Returns the ETag of a JSON reply; undefined for a reply without `data`, such as a message or a
 * mass result, and for the reply to a write without a version.
 */
export function etagOf(reply: unknown, text: string, isRead: boolean): string | undefined {
  if (typeof reply !== 'object' || reply === null || !('data' in reply)) return undefined
  const { data, [givenTag]: given, [ownerVersion]: owner } = reply as { data: unknown } & TagFields
  if (given !== undefined) return given
  const isVersioned = typeof data === 'object' && data !== null && 'version' in data && typeof data.version === 'number'
  const version = isVersioned ? (data.version as number) : owner
  if (isRead) return byteTag(text, version)
  return isVersioned ? versionTag(data.version as number) : undefined
}

/** Returns the ETag of the compressed reply, which has the encoding as a suffix. */
export const encodedTag = (etag: string, encoding: string): string => etag.replace(/"$/, `-${encoding}"`)

/**
 * Returns the ETags in a header, without the mark of weak ones: proxies that compress replies make
 * the ETags of this server weak. The ETag of a compressed reply also counts without the suffix of
 * the encoding.
 */
const tagsOf = (header: string): string[] =>
  header
    .replaceAll(/(^|,)\s*W\//g, '$1')
    .split(',')
    .flatMap((each) => [each.trim(), each.trim().replace(/-(?:br|gzip)"$/, '"')])

const isAny = (header: string): boolean => header.trim() === '*'

/** Returns whether If-None-Match, or the If-Match of a reply without a version, has this ETag. */
export const matches = (header: string, etag: string): boolean => isAny(header) || tagsOf(header).includes(etag)

const versionedTag = /^"(\d+)(?:-[\w-]{22})?"$/

/** Returns whether If-Match has an ETag with this version, whatever bytes its hash identifies. */
export const matchesVersion = (header: string, version: number): boolean =>
  isAny(header) || tagsOf(header).some((tag) => versionedTag.exec(tag)?.[1] === String(version))

/** Throws 412 when the request has an If-Match header that does not name the record's version. */
export function checkIfMatch({ ifMatch }: Context, version: number): void {
  if (ifMatch !== null && !matchesVersion(ifMatch, version))
    throw new Problem('version_mismatch', `The record is at version ${version} by now.`)
}

/**
 * Throws 412 when the request has an If-Match header that does not contain `etag`. For replies that
 * have an ETag but no version.
 */
export function checkTag({ ifMatch }: Context, etag: string): void {
  if (ifMatch !== null && !matches(ifMatch, etag)) throw new Problem('version_mismatch')
}
