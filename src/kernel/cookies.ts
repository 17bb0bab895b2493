// Cookies as text: those of a request, and those of an answer, which the pipeline collects from `ctx.cookies`. What we put into
// one never needs quoting.
import type { Context } from './context.ts'

type Headers = Context['headers']

/** The value of a cookie; undefined for none, and for several of one name: any but one of them was put there by somebody else. */
export function cookieOf({ cookie }: Headers, name: string): string | undefined {
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
  const isSecure = [ctx.calledAt, ctx.services.config.appUrl ?? ''].some((each) => /^https:/i.test(each))
  const parts = [`${name}=${value}`, 'Path=/', 'SameSite=Lax']
  if (seconds !== undefined) parts.push(`Max-Age=${seconds}`)
  if (isHidden) parts.push('HttpOnly')
  if (isSecure) parts.push('Secure')
  ctx.cookies.push(parts.join('; '))
}
