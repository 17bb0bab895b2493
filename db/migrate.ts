// Brings a database to the newest shape: forward only, in order, in one transaction, after a copy of the
// file. The list is written out rather than read from disk, so that compiled code carries it.

import { type Kysely, sql } from 'kysely'
import type { Dialect } from './dialects/dialect.ts'
import { up as identity } from './migrations/0001_identity.ts'
import { up as vocabulary } from './migrations/0002_vocabulary.ts'
import { up as contacts } from './migrations/0003_contacts.ts'
import { up as catalogue } from './migrations/0004_catalogue.ts'
import { up as sales } from './migrations/0005_sales.ts'
import { up as work } from './migrations/0006_work.ts'
import { up as automation } from './migrations/0007_automation.ts'
import { up as events } from './migrations/0008_events.ts'
import { up as files } from './migrations/0009_files.ts'
import { up as inventory } from './migrations/0010_inventory.ts'
import { up as quotes } from './migrations/0011_quotes.ts'
import { up as mail } from './migrations/0012_mail.ts'
import { up as settings } from './migrations/0013_settings.ts'
import { up as marketing } from './migrations/0014_marketing.ts'
import { up as archives } from './migrations/0015_archives.ts'
import { up as search } from './migrations/0016_search.ts'
import { up as jobs } from './migrations/0017_jobs.ts'
import { up as deliveries } from './migrations/0018_deliveries.ts'
import { up as sessions } from './migrations/0019_sessions.ts'
import type { Db, Store } from './open.ts'
import { rebuild } from './search.ts'

export interface Migration {
  readonly name: string
  readonly up: (db: Kysely<unknown>, dialect: Dialect) => Promise<void>
}

/** In the order they run. Append only: a released migration is never edited, see migrations/released.txt. */
export const migrations: readonly Migration[] = [
  { name: '0001_identity', up: identity },
  { name: '0002_vocabulary', up: vocabulary },
  { name: '0003_contacts', up: contacts },
  { name: '0004_catalogue', up: catalogue },
  { name: '0005_sales', up: sales },
  { name: '0006_work', up: work },
  { name: '0007_automation', up: automation },
  { name: '0008_events', up: events },
  { name: '0009_files', up: files },
  { name: '0010_inventory', up: inventory },
  { name: '0011_quotes', up: quotes },
  { name: '0012_mail', up: mail },
  { name: '0013_settings', up: settings },
  { name: '0014_marketing', up: marketing },
  { name: '0015_archives', up: archives },
  { name: '0016_search', up: search },
  { name: '0017_jobs', up: jobs },
  { name: '0018_deliveries', up: deliveries },
  { name: '0019_sessions', up: sessions },
]

/**
 * The names of the migrations applied now, none when the database was up to date. All of them in one transaction: what fails leaves
 * the database as it was.
 */
export async function migrate(store: Store, known = migrations): Promise<string[]> {
  if ((await pending(store, known)).length === 0) return []
  const copy = (await store.dialect.hasTables(unknownTables(store)))
    ? await store.dialect.copies.aside(
        unknownTables(store),
        store.url,
        new Date().toISOString().replaceAll(/[:.]/g, '-'),
      )
    : null
  let current = ''
  try {
    return await store.db.transaction().execute(async (db) => {
      // Another process may have been faster.
      const due = await pending({ db }, known)
      await createList(db, store.dialect)
      for (const { name, up } of known.filter(({ name }) => due.includes(name))) {
        current = name
        await up(db as unknown as Kysely<unknown>, store.dialect)
        await db.insertInto('migrations').values({ name, applied_at: new Date().toISOString() }).execute()
      }
      // What records are found by is read from the newest shape of the tables, so once they all have it.
      if (due.length > 0) await rebuild(db, store.dialect)
      return due
    })
  } catch (cause) {
    if (current === '') throw cause
    const reason = cause instanceof Error ? cause.message : String(cause)
    const aside = copy === null ? '' : ` A copy made before is ${copy}.`
    throw new Error(`The migration ${current} failed (${reason}). The database is as it was.${aside}`, { cause })
  }
}

const createList = (db: Db, dialect: Dialect): Promise<void> =>
  db.schema
    .createTable('migrations')
    .ifNotExists()
    .addColumn('name', 'text', (column) => column.primaryKey().notNull())
    .addColumn('applied_at', sql.raw(dialect.columnType('timestamp')), (column) => column.notNull())
    .modifyEnd(sql.raw(dialect.tableOptions))
    .execute()

/** The names of the migrations still to run, in order; changes nothing. */
export async function pending(store: Pick<Store, 'db'>, known = migrations): Promise<string[]> {
  const tables = await store.db.introspection.getTables()
  const isFresh = !tables.some((table) => table.name === 'migrations')
  const applied = isFresh ? [] : await store.db.selectFrom('migrations').select('name').orderBy('name').execute()
  const names = new Set(applied.map((row) => row.name))
  const unknown = [...names].filter((name) => !known.some((migration) => migration.name === name))
  if (unknown.length > 0) {
    throw new Error(
      `This database was migrated by a newer version of Accord CRM (${unknown.join(', ')}). Install that version, or restore a backup made before it.`,
    )
  }
  return known.map((migration) => migration.name).filter((name) => !names.has(name))
}

function unknownTables(store: Store): Kysely<unknown> {
  return store.db as unknown as Kysely<unknown>
}
