// Stores the progress of a copy in a separate table of the target. Each position is written in the
// same transaction as its rows, so a killed copy continues exactly where it ended.

import { type Kysely, sql } from 'kysely'
import type { Dialect } from '../dialect.ts'
import type { Db } from '../store.ts'

export const progressTable = 'transfer_progress'

interface ProgressTables {
  transfer_progress: { step: string; note: string }
}

/** The state of a source. An interrupted copy continues only if this state has not changed. */
export interface SourceState {
  /** The id of the installation (installation.ts). */
  installation: string | null
  /** The last generated id of each table, to detect rows that were added later. */
  lastIds: Record<string, number>
}

/** The key of the last row that was copied, or `done`. */
export type Position = readonly unknown[] | 'done'

/** The name under which the state of the source is stored. */
const sourceStep = 'source'

const progressOf = (db: Db): Kysely<ProgressTables> => db as unknown as Kysely<ProgressTables>

export async function createProgress(db: Db, dialect: Dialect, state: SourceState): Promise<void> {
  await db.schema
    .createTable(progressTable)
    .addColumn('step', sql.raw(dialect.columnType('text')), (column) => column.primaryKey().notNull())
    .addColumn('note', sql.raw(dialect.columnType('text')), (column) => column.notNull())
    .modifyEnd(sql.raw(dialect.tableOptions))
    .execute()
  await writeNote(db, sourceStep, state)
}

export async function hasProgress(db: Db): Promise<boolean> {
  const tables = await db.introspection.getTables()
  return tables.some(({ name }) => name === progressTable)
}

export const readSourceState = async (db: Db): Promise<SourceState | null> =>
  (await readNote(db, sourceStep)) as SourceState | null

export const readPosition = async (db: Db, step: string): Promise<Position | null> =>
  (await readNote(db, step)) as Position | null

export const writePosition = (db: Db, step: string, position: Position): Promise<void> => writeNote(db, step, position)

export const dropProgress = (db: Db): Promise<void> => db.schema.dropTable(progressTable).execute()

async function readNote(db: Db, step: string): Promise<unknown> {
  const found = await progressOf(db)
    .selectFrom(progressTable)
    .select('note')
    .where('step', '=', step)
    .executeTakeFirst()
  return found === undefined ? null : JSON.parse(found.note)
}

async function writeNote(db: Db, step: string, value: unknown): Promise<void> {
  const note = JSON.stringify(value)
  await progressOf(db)
    .insertInto(progressTable)
    .values({ step, note })
    .onConflict((conflict) => conflict.column('step').doUpdateSet({ note }))
    .execute()
}
