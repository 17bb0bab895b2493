// Finds the workflows whose actions use a template or webhook. Actions are JSON, so no foreign key
// protects these references.
import type { Context } from '../../kernel/context.ts'

interface Action {
  id: string
  value: unknown
}

/**
 * Returns the workflows with a matching action, in the form of conflicts for the error `in_use`.
 */
export async function findWorkflowsWith(ctx: Context, isMeant: (action: Action) => boolean) {
  const rows = await ctx.db.selectFrom('workflows').select(['id', 'actions']).orderBy('id').execute()
  return rows
    .filter(({ actions }) => (JSON.parse(actions) as Action[]).some(isMeant))
    .map(({ id }) => ({ entity_type: 'workflows', id, field: 'actions' }))
}
