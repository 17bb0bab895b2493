// Reindexes the persons of a deleted organization, because the index entry of a person contains the
// name of the organization.
import type { DeleteHook } from '../../kernel/history/delete-hooks.ts'

const reindexPersons: DeleteHook = async ({ db, unit }, organizationId) => {
  const rows = await db.selectFrom('persons').select('id').where('organization_id', '=', organizationId).execute()
  for (const { id } of rows) unit?.stale.push({ entity: 'persons', id })
}

export const deleteHooks = { organizations: reindexPersons }
