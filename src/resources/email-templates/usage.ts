// Which workflows name a template or a webhook: in the values of their actions, which no foreign key keeps.
import type { Context } from '../../kernel/context.ts'

interface Action {
  id: string
  value: unknown
}

/** Those with such an action, as what stands in the way of a deletion. */
export async function workflowsWith(ctx: Context, isMeant: (action: Action) => boolean) {
  const rows = await ctx.db.selectFrom('workflows').select(['id', 'actions']).orderBy('id').execute()
  return rows
    .filter(({ actions }) => (JSON.parse(actions) as Action[]).some(isMeant))
    .map(({ id }) => ({ entity_type: 'workflows', id, field: 'actions' }))
}
