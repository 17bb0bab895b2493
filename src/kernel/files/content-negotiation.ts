// Which of the media types a caller likes best (RFC 9110, 12.5.1). Nobody is refused for it (DOMAIN 3.1): the first is the
// answer to those who like none.
import Negotiator from 'negotiator'
import type { Context } from '../context.ts'

export function preferred<Type extends string>(ctx: Context, types: readonly [Type, ...Type[]]): Type {
  const { accept } = ctx.headers
  const header = Array.isArray(accept) ? accept.join(', ') : accept
  const chosen = new Negotiator({ headers: { accept: header } }).mediaType([...types])
  return types.find((type) => type === chosen) ?? types[0]
}
