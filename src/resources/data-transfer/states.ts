// The states of an import and the moves between them (DOMAIN 21.1). Those that people make have events; what a run finds out is
// stored by the run, in the transaction of the step that found it.

import type { Updateable } from 'kysely'
import type { DB as Tables } from '../../../db/tables.gen.ts'
import type { EventBase, Schema } from '../../contract/types.ts'
import { type Context, now } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import type { Snapshot } from '../../kernel/write/events.ts'
import { emitOnly, transaction, write } from '../../kernel/write/write.ts'
import { requireAbility } from './abilities.ts'
import { counted, type Failing, keepErrors } from './errors.ts'
import { requireOwn, takenOver } from './owner.ts'
import { fresh, imports } from './resource.ts'
import { find, type ImportRow } from './run.ts'

type Changes = Updateable<Tables['imports']>

/** What is stored of a step, with a version of its own so that no client trusts an old ETag. */
export async function store(ctx: Context, row: ImportRow, changes: Changes): Promise<void> {
  await ctx.db
    .updateTable('imports')
    .set({ ...changes, version: row.version + 1, updated_at: now(ctx) })
    .where('id', '=', row.id)
    .execute()
}

/** One move by a caller, with its pair of events. */
async function move(
  ctx: Context,
  id: number,
  event: EventBase,
  from: readonly string[],
  change: (row: ImportRow) => Promise<Changes>,
): Promise<Schema<'Import'>> {
  await imports.assertVisible(ctx, id)
  const row = await find(ctx, id)
  if (!from.includes(row.state))
    throw new Problem('state_conflict', `The import is ${row.state}; it must be ${from.join(' or ')} for this.`)
  const before = (await imports.get(ctx, id)) as unknown as Snapshot
  const changes = await change(row)
  await write(ctx, event, { entity: 'imports', id, input: {}, before }, async (ctx) => {
    await store(ctx, row, changes)
    return { id, entity: (await imports.get(ctx, id)) as unknown as Snapshot }
  })
  return imports.get(ctx, id)
}

export const beginValidation = (ctx: Context, id: number): Promise<Schema<'Import'>> =>
  transaction(ctx, (ctx) =>
    move(ctx, id, 'data_transfer.imports.validate', ['pending'], async (row) => {
      requireAbility(ctx, row)
      return { ...fresh, ...takenOver(ctx, row), state: 'validating' }
    }),
  )

/**
 * From the beginning, or behind the last batch of an earlier run. `isRevived`: whoever looks after jobs has it gone on with; nothing
 * but what its user had started.
 */
export const beginProcessing = (
  ctx: Context,
  id: number,
  { isRevived = false }: { isRevived?: boolean } = {},
): Promise<Schema<'Import'>> =>
  transaction(ctx, async (ctx) => {
    let isFirst = false
    const started = await move(ctx, id, imports.events.update, ['validated', 'failed', 'cancelled'], async (row) => {
      requireAbility(ctx, row)
      if (!isRevived) requireOwn(ctx, row)
      isFirst = row.state === 'validated'
      if (isFirst) await ctx.db.deleteFrom('import_errors').where('import_id', '=', id).execute()
      return { ...(isFirst && { ...fresh, rows_count: row.rows_count, started_at: now(ctx) }), state: 'processing' }
    })
    if (isFirst) await emitOnly(ctx, 'data_transfer.imports.started', aboutOf(started))
    return started
  })

export const cancel = (ctx: Context, id: number): Promise<Schema<'Import'>> =>
  transaction(ctx, (ctx) => move(ctx, id, imports.events.update, ['processing'], async () => ({ state: 'cancelled' })))

const aboutOf = (shown: Schema<'Import'>) => ({
  entity: 'imports',
  id: shown.id,
  shown: shown as unknown as Snapshot,
})

/** All rows were looked at. Nothing happens when somebody else has ended it. */
export const complete = (ctx: Context, id: number): Promise<void> =>
  transaction(ctx, async (ctx) => {
    const row = await find(ctx, id)
    if (row.state !== 'processing') return
    await store(ctx, row, { state: 'completed', progress: 100, completed_at: now(ctx) })
    await emitOnly(ctx, 'data_transfer.imports.completed', aboutOf(await imports.get(ctx, id)))
  })

/** It cannot go on. What is wrong with it as a whole is told of row 0. */
export const fail = (ctx: Context, id: number, failing: readonly Failing[]): Promise<void> =>
  transaction(ctx, async (ctx) => {
    const row = await find(ctx, id)
    if (row.state !== 'processing') return
    const before = (await imports.get(ctx, id)) as unknown as Snapshot
    await write(ctx, imports.events.update, { entity: 'imports', id, input: {}, before }, async (ctx) => {
      await keepErrors(ctx, id, failing)
      await store(ctx, row, { ...counted(row, failing), state: 'failed' })
      return { id, entity: (await imports.get(ctx, id)) as unknown as Snapshot }
    })
  })

/** What is wrong with a file or an import as a whole. */
export const faultOf = (message: string, code: string, column: string | null = null, row = 0): Failing => ({
  cells: [],
  errors: [{ row, column, code, message }],
})

/** A validation that could not be finished for a reason that has nothing to do with the file. */
export const giveUp = (ctx: Context, id: number, cause: string): Promise<void> =>
  transaction(ctx, async (ctx) => {
    const row = await find(ctx, id)
    if (row.state !== 'validating') return
    const failing = [faultOf(cause, 'import_failed')]
    await keepErrors(ctx, id, failing)
    await store(ctx, row, { ...counted(row, failing), state: 'invalid' })
  })
