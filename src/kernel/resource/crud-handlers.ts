// The standard handlers of a resource: list, get, create, update and delete. Also query,
// upsert, history and restore, where the contract has these operations.

import type { Context } from '../context.ts'
import { historyHandler } from '../history/history.ts'
import { restoreHandler } from '../history/restore.ts'
import type { QueryValues } from '../query/filter.ts'
import { capital } from '../values/format.ts'
import type { AnyBody, AnyResource, ResourceParts } from './any-definition.ts'
import type { Include } from './definition.ts'
import { upsertHandler } from './external-ids.ts'

interface Input {
  params: { id: number }
  query: QueryValues & { include?: Include }
  body: AnyBody
}

export function crudHandlers({ d, below }: Pick<ResourceParts, 'd' | 'below'>, resource: AnyResource) {
  const { noun, operations } = d
  const message = (verb: string): string => `${capital(noun)} ${verb}.`
  const creating = async (ctx: Context, { body }: Pick<Input, 'body'>) => ({
    data: await resource.create(ctx, body),
    message: message('created'),
  })
  const updating = async (ctx: Context, { params, body }: Pick<Input, 'params' | 'body'>) => ({
    data: await resource.update(ctx, params.id, body),
    message: message('updated'),
  })
  // These handlers are typed by the operations of a definition, which are known only at run time.
  const ways = { creating: creating as never, updating: updating as never }
  return {
    [operations.list]: (ctx: Context, { query }: Input) => resource.list(ctx, query),
    [operations.get]: async (ctx: Context, { params, query }: Input) => ({
      data: await resource.get(ctx, params.id, query.include),
    }),
    [operations.create]: creating,
    [operations.update]: updating,
    [operations.delete]: async (ctx: Context, { params, query }: Input) => {
      await resource.remove(ctx, params.id, query.replace_with as number | undefined)
      return { message: message('deleted') }
    },
    ...(below.history && { [below.history]: historyHandler(resource) }),
    ...(below.query && {
      [below.query]: (ctx: Context, { query, body }: Input) => resource.list(ctx, { ...query, where: body.where }),
    }),
    ...(below.upsert && { [below.upsert]: upsertHandler(resource, { ...operations, ...ways }) }),
    ...(below.restore && { [below.restore]: restoreHandler(resource) }),
  }
}
