// Checks the token abilities that an import needs, before the run starts. Rows are imported with
// the permissions of the import's user, which may exceed the abilities of the token.
import { operations } from '../../contract/operations.gen.ts'
import type { OperationId } from '../../contract/types.ts'
import { assertCanCall, type Context, canCall, systemContext } from '../../kernel/context.ts'
import { operationOf } from './draft-rows/row-drafts.ts'
import { stops } from './errors.ts'
import { readHeader } from './map-columns/read-header.ts'
import { openTable } from './read-file/open-file.ts'
import { findImport } from './run/import-run.ts'
import { type ImportRow, planOf } from './settings.ts'

export const abilityOf = (operation: OperationId) => ({ permission: null, ability: operations[operation].ability })

/** Throws 403 for a token that may not update records of the imported type. */
export const requireAbility = (ctx: Context, row: ImportRow): void =>
  assertCanCall(ctx, abilityOf(operationOf(planOf(row).type, 'update')))

/**
 * The columns that create related records, each with the operation whose ability the token needs.
 */
const creates = {
  tags: 'createTag',
  organization_name: 'createOrganization',
  person: 'createPerson',
} as const satisfies Record<string, OperationId>

/**
 * Throws 403 when a column of the file may create related records and the token may not create
 * them. Must run outside a transaction, because it reads the file.
 */
export async function requireCreations(ctx: Context, id: number): Promise<void> {
  const beyond = Object.entries(creates).filter(([, operation]) => !canCall(ctx, abilityOf(operation)))
  if (beyond.length === 0) return
  const system = systemContext(ctx.services, 'import')
  const row = await findImport(system, id)
  // A deletion uses only the key column, so it creates no related records.
  if (planOf(row).action === 'delete') return
  const fields = await columnFieldsOf(system, row)
  const { type, unknown } = planOf(row)
  // A lead creates persons and organizations only with this setting.
  const isCreated = (field: string): boolean => field === 'tags' || type !== 'leads' || unknown === 'create'
  for (const [field, operation] of beyond)
    if (fields.has(field) && isCreated(field)) assertCanCall(ctx, abilityOf(operation))
}

/**
 * Returns the fields of the file's columns. Returns none for an unreadable file, because validation
 * reports that error.
 */
async function columnFieldsOf(ctx: Context, row: ImportRow): Promise<ReadonlySet<string>> {
  try {
    for await (const { cells } of await openTable(ctx, row)) {
      const { columns } = await readHeader(ctx, planOf(row), cells)
      return new Set(columns.map(({ name }) => name))
    }
  } catch (error) {
    if (!stops(error, 'file')) throw error
  }
  return new Set()
}
