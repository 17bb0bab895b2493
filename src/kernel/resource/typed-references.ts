// References to records whose type the schema does not tell: the request tells it by its path, by
// `entity_type` beside the reference, or by the record in its path.
import type { Context } from '../context.ts'
import { type FindNamed, findOneNamed, type NamingRequest } from './named-references.ts'

/** Returns the entity of the record that a request names, or null when the request is wrong. */
export type FindEntity = (ctx: Context, request: NamingRequest) => Promise<string | null>

/** Returns a finder of records of any type. `byPath` tells the type for some paths. */
export const findTyped =
  (byPath: Readonly<Record<string, FindEntity>>): FindNamed =>
  async (ctx, { key, text }, { beside, ...request }) => {
    const find = byPath[request.path]
    const entity = find ? await find(ctx, request) : entityOf(ctx, request.path, beside.entity_type)
    const found = entity === null ? null : await findOneNamed(ctx, entity, { [key]: text }, 0)
    return found ?? 'The type of the record is unknown.'
  }

/** Returns the sent type, or else the type of the list right above the path. */
function entityOf({ services }: Context, path: string, sent: unknown): string | null {
  if (typeof sent === 'string') return sent
  const list = path.slice(0, path.lastIndexOf('/'))
  return [...services.resources.values()].find(({ listOperation }) => listOperation.path === list)?.entity ?? null
}
