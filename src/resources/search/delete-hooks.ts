// Reindexes persons when their organization is deleted, because they are found by its name.
import type { DeleteHook } from '../../kernel/history/delete-hooks.ts'

const reindexPersons: DeleteHook = async ({ db, unit }, organizationId) => {
  const rows = await db.selectFrom('persons').select('id').where('organization_id', '=', organizationId).execute()
  for (const { id } of rows) unit?.stale.push({ entity: 'persons', id })
}

export const deleteHooks = { organizations: reindexPersons }
