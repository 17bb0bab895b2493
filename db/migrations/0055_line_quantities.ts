// The quantity of a lead's product line becomes a decimal number, as in quotes. Archived lines get
// the same scale, so that deleted leads can still be restored.

import { type Kysely, sql } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { addColumn, money } from '../schema/columns.ts'

const atOnce = 100
const scale = 10_000

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await addColumn(db, dialect, 'lead_products', 'decimal_quantity', money(scale))
  await sql`update lead_products set decimal_quantity = quantity * ${sql.lit(scale)}`.execute(db)
  await db.schema.alterTable('lead_products').dropColumn('quantity').execute()
  await db.schema.alterTable('lead_products').renameColumn('decimal_quantity', 'quantity').execute()
  await scaleArchives(db)
}

interface ArchivedRow {
  table: string
  row: { quantity?: number }
}

async function scaleArchives(db: Kysely<unknown>): Promise<void> {
  for (let last = 0; ; ) {
    const { rows: archives } = await sql<{ id: number; rows: string }>`select id, rows from archives
      where id > ${last} and entity_type = 'leads' order by id limit ${atOnce}`.execute(db)
    for (const archive of archives) {
      const rows = JSON.parse(archive.rows) as ArchivedRow[]
      const lines = rows.filter(({ table }) => table === 'lead_products')
      if (lines.length === 0) continue
      for (const { row } of lines) row.quantity = (row.quantity ?? 1) * scale
      await sql`update archives set rows = ${JSON.stringify(rows)} where id = ${archive.id}`.execute(db)
    }
    if (archives.length < atOnce) return
    last = archives.at(-1)?.id ?? 0
  }
}
