// What validating and processing share: the import as a row, its file as batches of rows, the lock that lets one process at a time
// work on it, and whom it acts for.
import type { Selectable } from 'kysely'
import type { DB as Tables } from '../../../db/tables.gen.ts'
import { operations } from '../../contract/operations.gen.ts'
import { acquireLock, releaseLock } from '../../jobs/locks.ts'
import { signedInAgain } from '../../kernel/auth/tokens.ts'
import { type Context, hasPermission, type Services, systemContext } from '../../kernel/context.ts'
import { yieldIfDue } from '../../kernel/runtime/cooperative.ts'
import { rowsOf } from '../files/rows.ts'
import { type Plan, type Reading, readRow } from './apply.ts'
import { type Column, readHeader } from './columns.ts'
import { readRows, type SheetRow } from './read.ts'
import { type Draft, draftOf } from './rows.ts'
import { Unreadable } from './unreadable.ts'

export type ImportRow = Selectable<Tables['imports']>

export interface Run {
  services: Services
  id: number
  /** A name for whoever works on the import (process-identity.ts `newOwnerId`). */
  own: string
  /** Aborts between two batches; what is left is for the next run. */
  signal?: AbortSignal
  /** Called behind each batch. */
  tell?: (row: Pick<ImportRow, 'processed_rows_count' | 'rows_count'>) => void
}

/** Another process works on the import, or it is not what it was when this run looked last. */
export class Elsewhere extends Error {}

/** The import cannot go on, for a reason that a sentence tells. */
export class Refused extends Error {}

export const batchSize = 100
const lockMs = 60_000

/** As each step sees it: at its own time, with nobody's permissions yet. */
export const contextOf = ({ services }: Run): Context => systemContext(services, 'import')

export const planOf = (row: ImportRow): Plan => ({
  type: row.type as Plan['type'],
  action: row.action as Plan['action'],
  replacesLists: row.replace_lists === 1,
})

/** Throws `Elsewhere` for one that is gone. */
export async function find({ db }: Context, id: number): Promise<ImportRow> {
  const row = await db.selectFrom('imports').selectAll().where('id', '=', id).executeTakeFirst()
  if (!row) throw new Elsewhere('The import is gone.')
  return row
}

const lockOf = (id: number): string => `import:${id}`

/** Takes the lock of the import or keeps it; in the transaction of a batch. */
export async function occupy(ctx: Context, { id, own }: Pick<Run, 'id' | 'own'>): Promise<void> {
  if (!(await acquireLock(ctx, lockOf(id), own, lockMs))) throw new Elsewhere('Another process works on the import.')
}

export const vacate = (run: Run): Promise<void> => releaseLock(contextOf(run), lockOf(run.id), run.own)

/** The context of whose import it is, with the permissions of this moment. Throws `Refused` when there are none. */
export async function actingFor<C extends Context>(ctx: C, { user_id: id }: ImportRow): Promise<C> {
  const user = id === null ? null : await signedInAgain(ctx, id)
  if (!user)
    throw new Refused(
      'The user whose import this is is gone or no longer active; rows are imported on behalf of that user.',
    )
  const acting = { ...ctx, user }
  const { permission } = operations.startImport
  if (!hasPermission(acting, permission))
    throw new Refused(`${user.name}, whose import this is, no longer has the permission ${permission}.`)
  return acting
}

/** The rows of the import's file. Throws `Unreadable`. */
export async function openTable(ctx: Context, row: ImportRow): Promise<AsyncGenerator<SheetRow>> {
  const [file] = row.file_id === null ? [] : await rowsOf(ctx, [row.file_id])
  const source = file && (await ctx.services.files.find(file.sha256))
  if (!file || !source) throw new Unreadable('The file of the import is gone.')
  return readRows(source, { contentType: file.content_type, separator: row.field_separator })
}

export interface Table {
  columns: readonly (Column | null)[]
  faults: readonly { column: string | null; message: string }[]
  batches: AsyncGenerator<Batch>
}

/** A row of the file as it is read before anything is looked up for it. */
export interface Line {
  draft: Draft
  /** Throws `RowRefused` for a row that is wrong in itself. */
  reading: () => Reading
}

export interface Batch {
  /** How many rows of the file come before it. */
  from: number
  lines: readonly Line[]
}

/** The header of the file, and its rows behind the first `skip` in batches. */
export async function readTable(ctx: Context, row: ImportRow, skip = 0): Promise<Table> {
  const rows = await openTable(ctx, row)
  const { value: header } = await rows.next()
  if (!header) throw new Unreadable('The file is empty.')
  const plan = planOf(row)
  const head = await readHeader(ctx, plan, (header as SheetRow).cells)
  return { ...head, batches: inBatches(rows, skip, (row) => lineOf(ctx, plan, draftOf(row, head.columns))) }
}

function lineOf(ctx: Context, plan: Plan, draft: Draft): Line {
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
  read: (row: SheetRow) => Line,
): AsyncGenerator<Batch> {
  let count = 0
  let lines: Line[] = []
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

/** How many rows there are behind the header; up to `most` and one. */
export async function countRows(ctx: Context, row: ImportRow, most = Number.POSITIVE_INFINITY): Promise<number> {
  let count = -1
  for await (const _row of await openTable(ctx, row)) if (++count > most) break
  return Math.max(count, 0)
}
