// What a token must be able to do by itself to have an import do it. Rows are written with all rights of the import's user, which may
// be more than those of the token that asks.
import { operations } from '../../contract/operations.gen.ts'
import type { OperationId } from '../../contract/types.ts'
import { assertCanCall, type Context, canCall, systemContext } from '../../kernel/context.ts'
import { operationOf } from './rows.ts'
import { find, type ImportRow, openTable, planOf } from './run.ts'
import { Unreadable } from './unreadable.ts'

const abilityOf = (operation: OperationId) => ({ permission: null, ability: operations[operation].ability })

/** A token that may not write the records may not have them written either. */
export const requireAbility = (ctx: Context, row: ImportRow): void =>
  assertCanCall(ctx, abilityOf(operationOf(planOf(row).type, 'update')))

/** What rows with such a column create where it is not there. */
const creates = { tags: 'createTag', organization_name: 'createOrganization' } as const satisfies Record<
  string,
  OperationId
>

/** Throws 403 for a token that could not create by itself what the columns of the file may create. Outside of any transaction. */
export async function requireCreations(ctx: Context, id: number): Promise<void> {
  const beyond = Object.entries(creates).filter(([, operation]) => !canCall(ctx, abilityOf(operation)))
  if (beyond.length === 0) return
  const system = systemContext(ctx.services, 'import')
  const row = await find(system, id)
  // Of a record that goes only its key matters.
  if (planOf(row).action === 'delete') return
  const names = await headerOf(system, row)
  for (const [column, operation] of beyond) if (names.has(column)) assertCanCall(ctx, abilityOf(operation))
}

/** What is wrong with the file is for the validation to tell. */
async function headerOf(ctx: Context, row: ImportRow): Promise<ReadonlySet<string>> {
  try {
    for await (const { cells } of await openTable(ctx, row)) return new Set(cells.map((cell) => cell.trim()))
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error
  }
  return new Set()
}
