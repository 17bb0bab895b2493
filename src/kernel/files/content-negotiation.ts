// Returns the media type that the caller prefers (RFC 9110, 12.5.1). Returns the first type when
// the caller accepts none of `types`. The API never responds with 406.
import Negotiator from 'negotiator'
import type { Context } from '../context.ts'

export function preferred<Type extends string>(
  { headers: { accept } }: Pick<Context, 'headers'>,
  types: readonly [Type, ...Type[]],
): Type {
  const header = Array.isArray(accept) ? accept.join(', ') : accept
  const chosen = new Negotiator({ headers: { accept: header } }).mediaType([...types])
  return types.find((type) => type === chosen) ?? types[0]
}
