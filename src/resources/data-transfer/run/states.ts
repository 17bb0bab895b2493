// Changes the state of an import. State changes by users emit events. A run stores
// its progress in the transaction of each batch.
import type { Updateable } from 'kysely'
import type { DB as Tables } from '../../../../db/tables.gen.ts'
import type { EventBase, Schema } from '../../../contract/types.ts'
import { type Context, now } from '../../../kernel/context.ts'
import { Problem } from '../../../kernel/errors.ts'
import { saveStoredReferences } from '../../../kernel/history/stored-references.ts'
import type { Snapshot } from '../../../kernel/write/events.ts'
import { emitOnly, transaction, write } from '../../../kernel/write/write.ts'
import { requireAbility } from '../abilities.ts'
import type { ReportedRow } from '../errors.ts'
import { ownerAfterTakeover, requireOwn } from '../owner.ts'
import { addToCounts, saveErrors } from '../report/row-errors.ts'
import { imports, initialState, referencesInMapping } from '../resource.ts'
import type { ImportRow } from '../settings.ts'
import { findImport } from './import-run.ts'

type Changes = Updateable<Tables['imports']>

/** Stores changes and raises the version, so that old ETags become invalid. */
export async function storeState(ctx: Context, row: ImportRow, changes: Changes): Promise<void> {
  await ctx.db
    .updateTable('imports')
    .set({ ...changes, version: row.version + 1, updated_at: now(ctx) })
    .where('id', '=', row.id)
    .execute()
}

/**
 * Changes the state at the request of a caller and emits the `before` and `after` events. Throws
 * 409 when the import is in none of the states `from`.
 */
async function changeState(
  ctx: Context,
  id: number,
  event: EventBase,
  from: readonly string[],
  change: (row: ImportRow) => Promise<Changes>,
): Promise<Schema<'Import'>> {
  await imports.assertVisible(ctx, id)
  const row = await findImport(ctx, id)
  if (!from.includes(row.state))
    throw new Problem('state_conflict', `The import is ${row.state}; it must be ${from.join(' or ')} for this.`)
  const before = (await imports.get(ctx, id)) as unknown as Snapshot
  const changes = await change(row)
  await write(ctx, event, { entity: 'imports', id, input: {}, before }, async (ctx) => {
    await storeState(ctx, row, changes)
    return { id, entity: (await imports.get(ctx, id)) as unknown as Snapshot }
  })
  return imports.get(ctx, id)
}

export const beginValidation = (ctx: Context, id: number): Promise<Schema<'Import'>> =>
  transaction(ctx, (ctx) =>
    changeState(ctx, id, 'data_transfer.imports.validate', ['pending'], async (row) => {
      requireAbility(ctx, row)
      return { ...initialState, ...ownerAfterTakeover(ctx, row), state: 'validating' }
    }),
  )

/**
 * Starts the import from the beginning, or after the last stored batch of an earlier run.
 * `isRevived` means that an operator has revived the job; the caller then need not own the import.
 */
export const beginProcessing = (
  ctx: Context,
  id: number,
  { isRevived = false }: { isRevived?: boolean } = {},
): Promise<Schema<'Import'>> =>
  transaction(ctx, async (ctx) => {
    let isFirst = false
    const started = await changeState(
      ctx,
      id,
      imports.events.update,
      ['validated', 'failed', 'cancelled'],
      async (row) => {
        if (row.undo !== null) throw new Problem('state_conflict', 'The undo of the import has begun.')
        requireAbility(ctx, row)
        if (!isRevived) requireOwn(ctx, row)
        isFirst = row.state === 'validated'
        if (isFirst) await ctx.db.deleteFrom('import_errors').where('import_id', '=', id).execute()
        return {
          ...(isFirst && {
            ...initialState,
            changes: row.changes,
            warnings: row.warnings,
            preview: row.preview,
            rows_count: row.rows_count,
            started_at: now(ctx),
          }),
          state: 'processing',
        }
      },
    )
    // `accord import` creates the attributes of the mapping after the validation.
    if (isFirst) {
      const named = await referencesInMapping(ctx, await findImport(ctx, id))
      await saveStoredReferences(ctx, { entity: 'imports', id }, named)
    }
    if (isFirst) await emitOnly(ctx, 'data_transfer.imports.started', aboutOf(started))
    return started
  })

export const cancelRun = (ctx: Context, id: number): Promise<Schema<'Import'>> =>
  transaction(ctx, (ctx) =>
    changeState(ctx, id, imports.events.update, ['processing'], async () => ({ state: 'cancelled' })),
  )

/** Starts or continues the undo. `begin` checks it and returns its progress. */
export const beginUndo = (
  ctx: Context,
  id: number,
  begin: (row: ImportRow) => Promise<object>,
): Promise<Schema<'Import'>> =>
  changeState(ctx, id, imports.events.update, ['completed', 'failed', 'cancelled'], async (row) => ({
    undo: JSON.stringify(await begin(row)),
    state: 'undoing',
  }))

export async function completeUndo(ctx: Context, id: number, undo: string): Promise<void> {
  await changeState(ctx, id, imports.events.update, ['undoing'], async () => ({ undo, state: 'undone' }))
  await saveStoredReferences(ctx, { entity: 'imports', id }, [])
}

/** Ends an undo whose job has failed for good. It can be started again, and continues. */
export const failUndo = (ctx: Context, id: number, cause: string): Promise<void> =>
  transaction(ctx, async (ctx) => {
    const row = await ctx.db.selectFrom('imports').selectAll().where('id', '=', id).executeTakeFirst()
    if (row?.state !== 'undoing') return
    const failing = [importFault(cause, 'import_failed')]
    await saveErrors(ctx, id, failing)
    await storeState(ctx, row, { ...addToCounts(row, failing), state: 'failed' })
  })

const aboutOf = (shown: Schema<'Import'>) => ({
  entity: 'imports',
  id: shown.id,
  shown: shown as unknown as Snapshot,
})

/** Completes the import. Does nothing when the state is not `processing`. */
export const completeImport = (ctx: Context, id: number): Promise<void> =>
  transaction(ctx, async (ctx) => {
    const row = await findImport(ctx, id)
    if (row.state !== 'processing') return
    await storeState(ctx, row, { state: 'completed', progress: 100, completed_at: now(ctx) })
    await saveStoredReferences(ctx, { entity: 'imports', id }, [])
    await emitOnly(ctx, 'data_transfer.imports.completed', aboutOf(await imports.get(ctx, id)))
  })

/** Marks the import as failed and stores the errors. Errors of the import as a whole have row 0. */
export const failImport = (ctx: Context, id: number, failing: readonly ReportedRow[]): Promise<void> =>
  transaction(ctx, async (ctx) => {
    const row = await findImport(ctx, id)
    if (row.state !== 'processing') return
    const before = (await imports.get(ctx, id)) as unknown as Snapshot
    await write(ctx, imports.events.update, { entity: 'imports', id, input: {}, before }, async (ctx) => {
      await saveErrors(ctx, id, failing)
      await storeState(ctx, row, { ...addToCounts(row, failing), state: 'failed' })
      return { id, entity: (await imports.get(ctx, id)) as unknown as Snapshot }
    })
  })

/** Returns an error of the file or of the whole import, in the form of a row with errors. */
export const importFault = (message: string, code: string, column: string | null = null, row = 0): ReportedRow => ({
  cells: [],
  errors: [{ row, column, code, message }],
  isImported: false,
})

/**
 * Ends a validation that could not finish for a reason outside the file. The import becomes
 * invalid.
 */
export const giveUpValidation = (ctx: Context, id: number, cause: string): Promise<void> =>
  transaction(ctx, async (ctx) => {
    const row = await findImport(ctx, id)
    if (row.state !== 'validating') return
    const failing = [importFault(cause, 'import_failed')]
    await saveErrors(ctx, id, failing)
    await storeState(ctx, row, { ...addToCounts(row, failing), state: 'invalid' })
  })
