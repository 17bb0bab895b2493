// Brings a database to the newest shape: forward only, in order, in one transaction, after a copy of the
// file. The list is written out rather than read from disk, so that compiled code carries it.

import { type Kysely, sql } from 'kysely'
import type { Dialect } from './dialect.ts'
import { rebuild } from './search/search-index.ts'
import type { Db, Store } from './store.ts'

/** The parts of the installation that migrations use. */
export interface Means {
  /** Encrypts what was stored in clear, with the key of the installation. */
  readonly seal: (text: string) => string
}

/** Enough for a database in which nothing is to be encrypted. */
const noMeans: Means = {
  seal() {
    throw new Error('There are values to encrypt, and no secret to do it with.')
  },
}

export interface Migration {
  readonly name: string
  readonly up: (db: Kysely<unknown>, dialect: Dialect, means: Means) => Promise<void>
}

/** Loaded when it is due, so that a start does not wait for all that has ever been done. */
const step = (name: string, load: () => Promise<Pick<Migration, 'up'>>): Migration => ({
  name,
  up: async (db, dialect, means) => (await load()).up(db, dialect, means),
})

/** In the order they run. Append only: a released migration is never edited, see migrations/released.txt. */
export const migrations: readonly Migration[] = [
  step('0001_identity', () => import('./migrations/0001_identity.ts')),
  step('0002_vocabulary', () => import('./migrations/0002_vocabulary.ts')),
  step('0003_contacts', () => import('./migrations/0003_contacts.ts')),
  step('0004_catalogue', () => import('./migrations/0004_catalogue.ts')),
  step('0005_sales', () => import('./migrations/0005_sales.ts')),
  step('0006_work', () => import('./migrations/0006_work.ts')),
  step('0007_automation', () => import('./migrations/0007_automation.ts')),
  step('0008_events', () => import('./migrations/0008_events.ts')),
  step('0009_files', () => import('./migrations/0009_files.ts')),
  step('0010_inventory', () => import('./migrations/0010_inventory.ts')),
  step('0011_quotes', () => import('./migrations/0011_quotes.ts')),
  step('0012_mail', () => import('./migrations/0012_mail.ts')),
  step('0013_settings', () => import('./migrations/0013_settings.ts')),
  step('0014_marketing', () => import('./migrations/0014_marketing.ts')),
  step('0015_archives', () => import('./migrations/0015_archives.ts')),
  step('0016_search', () => import('./migrations/0016_search.ts')),
  step('0017_jobs', () => import('./migrations/0017_jobs.ts')),
  step('0018_deliveries', () => import('./migrations/0018_deliveries.ts')),
  step('0019_sessions', () => import('./migrations/0019_sessions.ts')),
  step('0020_filters', () => import('./migrations/0020_filters.ts')),
  step('0021_lead_totals', () => import('./migrations/0021_lead_totals.ts')),
  step('0022_token_parents', () => import('./migrations/0022_token_parents.ts')),
  step('0023_sign_in', () => import('./migrations/0023_sign_in.ts')),
  step('0024_automation', () => import('./migrations/0024_automation.ts')),
  step('0025_uncertain_sends', () => import('./migrations/0025_uncertain_sends.ts')),
  step('0026_installation', () => import('./migrations/0026_installation.ts')),
  step('0027_full_text', () => import('./migrations/0027_full_text.ts')),
  step('0028_numbers', () => import('./migrations/0028_numbers.ts')),
  step('0029_import_lists', () => import('./migrations/0029_import_lists.ts')),
  step('0030_workflow_events', () => import('./migrations/0030_workflow_events.ts')),
  step('0050_webhook_changer', () => import('./migrations/0050_webhook_changer.ts')),
]

/**
 * The names of the migrations applied now, none when the database was up to date. All of them in one transaction: what fails leaves
 * the database as it was.
 */
export async function migrate(store: Store, known = migrations, means = noMeans): Promise<string[]> {
  if ((await pendingMigrations(store, known)).length === 0) return []
  const copy = (await store.dialect.hasTables(unknownTables(store)))
    ? await store.dialect.copies.copyBeforeMigration(
        unknownTables(store),
        store.url,
        new Date().toISOString().replaceAll(/[:.]/g, '-'),
      )
    : null
  let current = ''
  try {
    // Of its own, because it may change all there is.
    return await store.db
      .transaction()
      .setIsolationLevel('serializable')
      .execute(async (db) => {
        // Another process may have been faster.
        const due = await pendingMigrations({ db }, known)
        await createList(db, store.dialect)
        for (const { name, up } of known.filter(({ name }) => due.includes(name))) {
          current = name
          await up(db as unknown as Kysely<unknown>, store.dialect, means)
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
export async function pendingMigrations(store: Pick<Store, 'db'>, known = migrations): Promise<string[]> {
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
