// Whose words change when a record is deleted: persons are found by the name of their organization, and leave it when it goes.
import type { Release } from '../../kernel/releases.ts'

const persons: Release = async ({ db, unit }, organizationId) => {
  const rows = await db.selectFrom('persons').select('id').where('organization_id', '=', organizationId).execute()
  for (const { id } of rows) unit?.stale.push({ entity: 'persons', id })
}

export const releases = { organizations: persons }
