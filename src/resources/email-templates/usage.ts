// Finds the workflows whose actions name a template or webhook; no foreign key protects these
// references.
import type { Context } from '../../kernel/context.ts'

interface Action {
  id: string
  value: unknown
}

/** Workflows with a matching action, as conflicts that block a deletion. */
export async function findWorkflowsWith(ctx: Context, isMeant: (action: Action) => boolean) {
  const rows = await ctx.db.selectFrom('workflows').select(['id', 'actions']).orderBy('id').execute()
  return rows
    .filter(({ actions }) => (JSON.parse(actions) as Action[]).some(isMeant))
    .map(({ id }) => ({ entity_type: 'workflows', id, field: 'actions' }))
}
