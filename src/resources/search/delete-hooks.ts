// Whose words change when a record is deleted: persons are found by the name of their organization, and leave it when it goes.
import type { DeleteHook } from '../../kernel/history/delete-hooks.ts'

const reindexPersons: DeleteHook = async ({ db, unit }, organizationId) => {
  const rows = await db.selectFrom('persons').select('id').where('organization_id', '=', organizationId).execute()
  for (const { id } of rows) unit?.stale.push({ entity: 'persons', id })
}

export const deleteHooks = { organizations: reindexPersons }
