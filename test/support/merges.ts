// Reads all stored rows, to compare them before a merge and after it was taken back.
import { sql } from 'kysely'
import type { TestServer } from './app.ts'

/** Tables of logs, caches and positions, and those that follow from others. */
const others =
  /^(events|archives|search_.*|jobs|job_.*|idempotency_keys|sessions|tokens|event_readers|locks|schedules|lead_count.*|commit_order|migrations|.*_log|call_counts|sign_in_devices|workflow_runs|webhook_deliveries)$/
const bookkeeping = new Set(['version', 'updated_at', 'moves'])

/** Returns the rows of all tables with records, as sorted texts. */
export async function everything({ store }: Pick<TestServer, 'store'>): Promise<Record<string, string[]>> {
  const { columns } = await store.dialect.relations(store.db as never)
  const found: Record<string, string[]> = {}
  for (const table of [...columns.keys()].sort().filter((each) => !others.test(each))) {
    const { rows } = await sql<Record<string, unknown>>`select * from ${sql.table(table)}`.execute(store.db)
    const texts = rows.map((row) => JSON.stringify(Object.entries(row).filter(([column]) => !bookkeeping.has(column))))
    if (texts.length > 0) found[table] = texts.sort()
  }
  return found
}

/** Returns the references to records that do not exist, as `table.column id`. */
export async function dangling({ store }: Pick<TestServer, 'store'>): Promise<string[]> {
  const { foreignKeys } = await store.dialect.relations(store.db as never)
  const found: string[] = []
  const search = async (at: string, table: string, column: string, parent: string, where = sql`1 = 1`) => {
    const { rows } = await sql<{ id: number }>`select ${sql.ref(column)} as id from ${sql.table(table)} as child
      where ${where} and ${sql.ref(column)} is not null
      and not exists (select 1 from ${sql.table(parent)} as parent where parent.id = child.${sql.ref(column)})`.execute(
      store.db,
    )
    for (const { id } of rows) found.push(`${at} ${id}`)
  }
  for (const { table, column, parent } of foreignKeys) await search(`${table}.${column}`, table, column, parent)
  for (const parent of ['persons', 'organizations']) {
    await search('unique_values', 'unique_values', 'entity_id', parent, sql`entity_type = ${parent}`)
    await search('stored_references', 'stored_references', 'to_id', parent, sql`to_type = ${parent}`)
  }
  return found
}
