// Finds the workflows whose actions use a template or webhook. Actions are JSON, so no foreign key
// protects these references.
import type { Context } from '../../kernel/context.ts'

interface Action {
  id: string
  value: unknown
}

/** Returns the workflows that have a matching action, as the conflicts of a refused deletion. */
export async function findWorkflowsWith(ctx: Context, isMeant: (action: Action) => boolean) {
  const rows = await ctx.db.selectFrom('workflows').select(['id', 'actions']).orderBy('id').execute()
  return rows
    .filter(({ actions }) => (JSON.parse(actions) as Action[]).some(isMeant))
    .map(({ id }) => ({ entity_type: 'workflows', id, field: 'actions' }))
}
