// Shared by validation and processing: the import row, its file as batches, the lock that lets one
// process at a time work on it, and the user it acts for.
import type { Selectable } from 'kysely'
import type { DB as Tables } from '../../../db/tables.gen.ts'
import { operations } from '../../contract/operations.gen.ts'
import { acquireLock, releaseLock } from '../../jobs/locks.ts'
import { signedInAgain } from '../../kernel/auth/tokens.ts'
import { type Context, hasPermission, type Services, systemContext } from '../../kernel/context.ts'
import { yieldIfDue } from '../../kernel/runtime/cooperative.ts'
import { fileRows } from '../files/rows.ts'
import { type ImportPlan, type RowReading, readRow } from './apply-row.ts'
import { type ImportColumn, readHeader } from './columns.ts'
import { readRows, type SheetRow } from './read-rows.ts'
import { parseRow, type RowDraft } from './row-drafts.ts'
import { UnreadableFile } from './unreadable-file.ts'

export type ImportRow = Selectable<Tables['imports']>

export interface ImportRun {
  services: Services
  id: number
  /** The lock owner's name (process-identity.ts `newOwnerId`). */
  own: string
  /** Aborts between two batches; the next run continues. */
  signal?: AbortSignal
  /** Called after each batch. */
  tell?: (row: Pick<ImportRow, 'processed_rows_count' | 'rows_count'>) => void
}

/** Another process works on the import or has changed it. */
export class TakenOver extends Error {}

/** The import cannot continue; the message says why. */
export class ImportRefused extends Error {}

export const batchSize = 100
const lockMs = 60_000

/** A context at the present time, without a user. */
export const runContext = ({ services }: ImportRun): Context => systemContext(services, 'import')

export const planOf = (row: ImportRow): ImportPlan => ({
  type: row.type as ImportPlan['type'],
  action: row.action as ImportPlan['action'],
  replacesLists: row.replace_lists === 1,
})

/** Throws `TakenOver` when the import is gone. */
export async function findImport({ db }: Context, id: number): Promise<ImportRow> {
  const row = await db.selectFrom('imports').selectAll().where('id', '=', id).executeTakeFirst()
  if (!row) throw new TakenOver('The import is gone.')
  return row
}

const lockOf = (id: number): string => `import:${id}`

/** Acquires or extends the lock of the import, in the transaction of a batch. */
export async function lockImport(ctx: Context, { id, own }: Pick<ImportRun, 'id' | 'own'>): Promise<void> {
  if (!(await acquireLock(ctx, lockOf(id), own, lockMs))) throw new TakenOver('Another process works on the import.')
}

export const unlockImport = (run: ImportRun): Promise<void> => releaseLock(runContext(run), lockOf(run.id), run.own)

/**
 * The context of the import's user with present permissions. Throws `ImportRefused` when the user
 * may not import any more.
 */
export async function asImportUser<C extends Context>(ctx: C, { user_id: id }: ImportRow): Promise<C> {
  const user = id === null ? null : await signedInAgain(ctx, id)
  if (!user)
    throw new ImportRefused('The import runs with the permissions of its user, who was deleted or is inactive.')
  const acting = { ...ctx, user }
  const { permission } = operations.startImport
  if (!hasPermission(acting, permission))
    throw new ImportRefused(`The import's user ${user.name} no longer has the permission ${permission}.`)
  return acting
}

/** The rows of the import's file. Throws `UnreadableFile`. */
export async function openTable(ctx: Context, row: ImportRow): Promise<AsyncGenerator<SheetRow>> {
  const [file] = row.file_id === null ? [] : await fileRows(ctx, [row.file_id])
  const source = file && (await ctx.services.files.find(file.sha256))
  if (!file || !source) throw new UnreadableFile('The file of the import is gone.')
  return readRows(source, { contentType: file.content_type, separator: row.field_separator })
}

export interface ImportTable {
  columns: readonly (ImportColumn | null)[]
  faults: readonly { column: string | null; message: string }[]
  batches: AsyncGenerator<Batch>
}

/** A parsed row, before database lookups. */
export interface ImportLine {
  draft: RowDraft
  /** Throws `RowRefused` for an invalid row. */
  reading: () => RowReading
}

export interface Batch {
  /** The number of rows before the batch. */
  from: number
  lines: readonly ImportLine[]
}

/** The header of the file, and its rows after the first `skip` in batches. */
export async function readTable(ctx: Context, row: ImportRow, skip = 0): Promise<ImportTable> {
  const rows = await openTable(ctx, row)
  const { value: header } = await rows.next()
  if (!header) throw new UnreadableFile('The file is empty.')
  const plan = planOf(row)
  const head = await readHeader(ctx, plan, (header as SheetRow).cells)
  return { ...head, batches: inBatches(rows, skip, (row) => lineOf(ctx, plan, parseRow(row, head.columns))) }
}

function lineOf(ctx: Context, plan: ImportPlan, draft: RowDraft): ImportLine {
  try {
    const reading = readRow(ctx, plan, draft)
    return { draft, reading: () => reading }
  } catch (error) {
    return {
      draft,
      reading: () => {
        throw error
      },
    }
  }
}

async function* inBatches(
  rows: AsyncGenerator<SheetRow>,
  skip: number,
  read: (row: SheetRow) => ImportLine,
): AsyncGenerator<Batch> {
  let count = 0
  let lines: ImportLine[] = []
  for await (const row of rows) {
    if (count++ < skip) continue
    await yieldIfDue()
    lines.push(read(row))
    if (lines.length < batchSize) continue
    yield { from: count - lines.length, lines }
    lines = []
  }
  if (lines.length > 0) yield { from: count - lines.length, lines }
}

/** The number of rows without the header; stops counting after `most`. */
export async function countRows(ctx: Context, row: ImportRow, most = Number.POSITIVE_INFINITY): Promise<number> {
  let count = -1
  for await (const _row of await openTable(ctx, row)) if (++count > most) break
  return Math.max(count, 0)
}
