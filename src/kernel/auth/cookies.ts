// Reads the cookies of requests and adds cookies to `ctx.cookies`, which the pipeline sends with
// the reply. The cookie values of this API never need quoting.
import type { Context, Services } from '../context.ts'

/** The properties of a request that decide whether its cookies are limited to HTTPS. */
type Place = Pick<Context, 'requestOrigin'> & { services: Pick<Services, 'config'> }

const isSecure = ({ requestOrigin, services }: Place): boolean =>
  [requestOrigin, services.config.appUrl ?? ''].some((each) => /^https:/i.test(each))

/**
 * Returns the name of a cookie on this connection. Over HTTPS the name has the prefix `__Host-`:
 * browsers then accept the cookie only from this host, so that no other host of the domain can set
 * it.
 */
const nameOf = (place: Place, name: string): string => (isSecure(place) ? `__Host-${name}` : name)

/**
 * Returns the value of a cookie; undefined when the cookie is missing. Also returns undefined when
 * the cookie is sent twice, because another site may have set one of the two values.
 */
export function cookieOf(place: Place & Pick<Context, 'headers'>, plainName: string): string | undefined {
  const name = nameOf(place, plainName)
  const { cookie } = place.headers
  const values = (typeof cookie === 'string' ? cookie : '')
    .split(';')
    .map((each) => each.trim())
    .filter((each) => each.startsWith(`${name}=`))
    .map((each) => each.slice(name.length + 1))
  return values.length === 1 ? values[0] : undefined
}

interface Kind {
  /** Whether the cookie is hidden from scripts (HttpOnly). */
  isHidden: boolean
  /**
   * The lifetime in seconds. With undefined, the browser deletes the cookie when it closes. With 0,
   * the browser deletes the cookie at once.
   */
  seconds?: number
}

/** Adds a cookie to the reply. Does nothing in a dry run. */
export function setCookie(ctx: Context, name: string, value: string, { isHidden, seconds }: Kind): void {
  if (ctx.dryRun) return
  const parts = [`${nameOf(ctx, name)}=${value}`, 'Path=/', 'SameSite=Lax']
  if (seconds !== undefined) parts.push(`Max-Age=${seconds}`)
  if (isHidden) parts.push('HttpOnly')
  if (isSecure(ctx)) parts.push('Secure')
  ctx.cookies.push(parts.join('; '))
}
