// Reindexes the persons of a deleted organization, because the index entry of a person contains the
// name of the organization.
import type { DeleteHook } from '../../kernel/history/delete-hooks.ts'
import { updateDocuments } from './deferred-updates.ts'

const reindexPersons: DeleteHook = async (ctx, organizationId) => {
  const rows = ctx.db.selectFrom('persons').select('id').where('organization_id', '=', organizationId)
  await updateDocuments(
    ctx,
    (await rows.execute()).map(({ id }) => ({ entity: 'persons', id })),
  )
}

export const deleteHooks = { organizations: reindexPersons }
