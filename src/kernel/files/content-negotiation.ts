// Returns the media type that the caller prefers (RFC 9110, 12.5.1). When the caller accepts none
// of them, returns the first one, never a 406 (DOMAIN 3.1).
import Negotiator from 'negotiator'
import type { Context } from '../context.ts'

export function preferred<Type extends string>(ctx: Context, types: readonly [Type, ...Type[]]): Type {
  const { accept } = ctx.headers
  const header = Array.isArray(accept) ? accept.join(', ') : accept
  const chosen = new Negotiator({ headers: { accept: header } }).mediaType([...types])
  return types.find((type) => type === chosen) ?? types[0]
}
