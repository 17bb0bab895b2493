// Functions that validation and processing share: the import row, the user of the import, and the
// lock that lets only one process work on an import.
import { operations } from '../../../contract/operations.gen.ts'
import { acquireLock, releaseLock } from '../../../jobs/locks.ts'
import { signedInAs } from '../../../kernel/auth/tokens.ts'
import { type Context, hasPermission, type Services, systemContext } from '../../../kernel/context.ts'
import { ImportStop, takenOver } from '../errors.ts'
import type { ImportRow } from '../settings.ts'

export interface ImportRun {
  services: Services
  id: number
  /** The owner name of the lock (process-identity.ts `newOwnerId`). */
  own: string
  /** Interrupts the run between two batches. The next run continues after the last batch. */
  signal?: AbortSignal
  /** Called with the progress after each batch. */
  onProgress?: (row: Pick<ImportRow, 'processed_rows_count' | 'rows_count'>) => void
}

const lockMs = 60_000

/** The request id of all events of an import. */
export const requestOf = (id: number): string => `import-${id}`

/** Returns a context with the current time and without a user. */
export const runContext = ({ services, id }: Pick<ImportRun, 'services' | 'id'>): Context => ({
  ...systemContext(services, 'import'),
  requestId: requestOf(id),
})

/** Returns the import row. Throws `ImportStop` when the import was deleted. */
export async function findImport({ db }: Context, id: number): Promise<ImportRow> {
  const row = await db.selectFrom('imports').selectAll().where('id', '=', id).executeTakeFirst()
  if (!row) throw takenOver('The import is gone.')
  return row
}

const lockOf = (id: number): string => `import:${id}`

/**
 * Acquires or extends the lock of the import, in the transaction of a batch. Throws
 * `ImportStop` when another process has the lock.
 */
export async function lockImport(ctx: Context, { id, own }: Pick<ImportRun, 'id' | 'own'>): Promise<void> {
  if (!(await acquireLock(ctx, lockOf(id), own, lockMs))) throw takenOver('Another process works on the import.')
}

export const unlockImport = (run: ImportRun): Promise<void> => releaseLock(runContext(run), lockOf(run.id), run.own)

/**
 * Returns a context with the import's user and the user's current permissions. Throws
 * `ImportStop` when the user may no longer import.
 */
export async function asImportUser<C extends Context>(ctx: C, { user_id: id }: ImportRow): Promise<C> {
  const user = id === null ? null : await signedInAs(ctx.db, id)
  const stopped = { kind: 'import' } as const
  if (!user)
    throw new ImportStop('The import runs with the permissions of its user, who was deleted or is inactive.', stopped)
  const acting = { ...ctx, user }
  const { permission } = operations.startImport
  if (!hasPermission(acting, permission))
    throw new ImportStop(`The import's user ${user.name} no longer has the permission ${permission}.`, stopped)
  return acting
}
