// Cookies as text: those of a request, and those of an answer, which the pipeline collects from `ctx.cookies`. What we put into
// one never needs quoting.
import type { Context, Services } from '../context.ts'

/** The parts of a request that decide whether cookies are for HTTPS only. */
type Place = Pick<Context, 'requestOrigin'> & { services: Pick<Services, 'config'> }

const isSecure = ({ requestOrigin: calledAt, services }: Place): boolean =>
  [calledAt, services.config.appUrl ?? ''].some((each) => /^https:/i.test(each))

/**
 * The name that a cookie has here. With `__Host-` a browser takes it from this host over HTTPS only, so that no other host of the
 * domain and no page without encryption can plant one. Without HTTPS browsers refuse the prefix.
 */
const nameOf = (place: Place, name: string): string => (isSecure(place) ? `__Host-${name}` : name)

/** The value of a cookie; undefined for none, and for several of one name: any but one of them was put there by somebody else. */
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
  /** Whether scripts cannot read it. */
  isHidden: boolean
  /** Left out, it ends with the browser; 0 takes it away. */
  seconds?: number
}

/** Sent with the answer, if there is one; a dry run sets none. */
export function setCookie(ctx: Context, name: string, value: string, { isHidden, seconds }: Kind): void {
  if (ctx.dryRun) return
  const parts = [`${nameOf(ctx, name)}=${value}`, 'Path=/', 'SameSite=Lax']
  if (seconds !== undefined) parts.push(`Max-Age=${seconds}`)
  if (isHidden) parts.push('HttpOnly')
  if (isSecure(ctx)) parts.push('Secure')
  ctx.cookies.push(parts.join('; '))
}
