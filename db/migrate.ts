// Applies the pending migrations in order, in one transaction. Copies an existing database first;
// only this copy can undo a migration. The list of migrations is written out, so that the compiled
// code contains every migration.

import { type Kysely, sql } from 'kysely'
import type { Dialect } from './dialect.ts'
import type { Db, Store } from './store.ts'

/** The steps of the program that follow the migrations. */
export interface MigrationSteps {
  /** Rewrites all search documents after the last migration. Code generation and tests omit it. */
  readonly rebuildSearch?: (db: Db, dialect: Dialect) => Promise<unknown>
  /** Runs after the migrations and `rebuildSearch`, in the same transaction. */
  readonly finish?: (db: Db, dialect: Dialect) => Promise<unknown>
}

export interface Migration {
  readonly name: string
  readonly up: (db: Kysely<unknown>, dialect: Dialect) => Promise<void>
}

/**
 * Returns a migration that loads its module when it runs, so that a start without pending
 * migrations loads none.
 */
const step = (name: string, load: () => Promise<Pick<Migration, 'up'>>): Migration => ({
  name,
  up: async (db, dialect) => (await load()).up(db, dialect),
})

/**
 * All migrations in the order in which they run. New migrations are only appended. A released
 * migration is never edited (migrations/released.txt).
 */
export const migrations: readonly Migration[] = [
  step('0001_identity', () => import('./migrations/0001_identity.ts')),
  step('0002_vocabulary', () => import('./migrations/0002_vocabulary.ts')),
  step('0003_contacts', () => import('./migrations/0003_contacts.ts')),
  step('0004_catalogue', () => import('./migrations/0004_catalogue.ts')),
  step('0005_sales', () => import('./migrations/0005_sales.ts')),
  step('0006_lead_totals', () => import('./migrations/0006_lead_totals.ts')),
  step('0007_work', () => import('./migrations/0007_work.ts')),
  step('0008_mail', () => import('./migrations/0008_mail.ts')),
  step('0009_data_transfer', () => import('./migrations/0009_data_transfer.ts')),
  step('0010_marketing', () => import('./migrations/0010_marketing.ts')),
  step('0011_automation', () => import('./migrations/0011_automation.ts')),
  step('0012_web_forms', () => import('./migrations/0012_web_forms.ts')),
  step('0013_history', () => import('./migrations/0013_history.ts')),
  step('0014_jobs', () => import('./migrations/0014_jobs.ts')),
  step('0015_settings', () => import('./migrations/0015_settings.ts')),
  step('0016_search', () => import('./migrations/0016_search.ts')),
  step('0017_lead_counts', () => import('./migrations/0017_lead_counts.ts')),
  step('0018_covering_indexes', () => import('./migrations/0018_covering_indexes.ts')),
  step('0019_flat_lists', () => import('./migrations/0019_flat_lists.ts')),
  step('0020_trigrams_per_entity', () => import('./migrations/0020_trigrams_per_entity.ts')),
  step('0021_deprecated_uses', () => import('./migrations/0021_deprecated_uses.ts')),
  step('0023_activity_notify', () => import('./migrations/0023_activity_notify.ts')),
  step('0024_lead_owners', () => import('./migrations/0024_lead_owners.ts')),
  step('0025_quote_documents', () => import('./migrations/0025_quote_documents.ts')),
  step('0026_number_and_url_attributes', () => import('./migrations/0026_number_and_url_attributes.ts')),
  step('0027_lead_outcomes', () => import('./migrations/0027_lead_outcomes.ts')),
  step('0028_tasks', () => import('./migrations/0028_tasks.ts')),
  step('0029_languages', () => import('./migrations/0029_languages.ts')),
  step('0030_import_records', () => import('./migrations/0030_import_records.ts')),
  step('0031_external_ids', () => import('./migrations/0031_external_ids.ts')),
  step('0033_bulk_answers', () => import('./migrations/0033_bulk_answers.ts')),
  step('0034_saved_views', () => import('./migrations/0034_saved_views.ts')),
  step('0035_merges', () => import('./migrations/0035_merges.ts')),
  step('0036_person_erasures', () => import('./migrations/0036_person_erasures.ts')),
  step('0037_more_external_ids', () => import('./migrations/0037_more_external_ids.ts')),
  step('0038_invitation_templates', () => import('./migrations/0038_invitation_templates.ts')),
]

/**
 * Applies the pending migrations in one transaction and returns their names. After a failure the
 * database is unchanged.
 */
export async function migrate(store: Store, known = migrations, steps: MigrationSteps = {}): Promise<string[]> {
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
    // `isLong`: the transaction commits alone, because it may change the whole database.
    return await store.transaction(
      async (db) => {
        // Another process may have applied migrations since the check above.
        const due = await pendingMigrations({ db }, known)
        for (const statement of store.dialect.setUpStatements) await sql.raw(statement).execute(db)
        await createList(db, store.dialect)
        for (const { name, up } of known.filter(({ name }) => due.includes(name))) {
          current = name
          await up(db as unknown as Kysely<unknown>, store.dialect)
          await db.insertInto('migrations').values({ name, applied_at: new Date().toISOString() }).execute()
        }
        // The rebuild reads the newest tables, so it runs after the last migration.
        if (due.length > 0) await steps.rebuildSearch?.(db, store.dialect)
        await steps.finish?.(db, store.dialect)
        return due
      },
      { isLong: true },
    )
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

/** The database has a migration of a newer version of the program, or of a release candidate. */
export class UnknownMigrationError extends Error {
  constructor(name: string) {
    super(
      `This database has the migration ${name}, which this version of Accord CRM does not know: a newer version or a release candidate has migrated it. Install that version, or restore a backup made before it.`,
    )
    this.name = 'UnknownMigrationError'
  }
}

/**
 * Returns the names of the pending migrations in order. Throws `UnknownMigrationError` for a
 * database that has a migration that this program does not know.
 */
export async function pendingMigrations(store: Pick<Store, 'db'>, known = migrations): Promise<string[]> {
  const tables = await store.db.introspection.getTables()
  const isFresh = !tables.some((table) => table.name === 'migrations')
  const applied = isFresh ? [] : await store.db.selectFrom('migrations').select('name').orderBy('name').execute()
  return pendingAfter(
    applied.map(({ name }) => name),
    known,
  )
}

/**
 * Returns the names of the pending migrations, given the names of the applied migrations. Throws
 * `UnknownMigrationError` for an unknown name.
 */
export function pendingAfter(applied: readonly string[], known = migrations): string[] {
  const unknown = applied.findLast((name) => !known.some((migration) => migration.name === name))
  if (unknown !== undefined) throw new UnknownMigrationError(unknown)
  return known.map(({ name }) => name).filter((name) => !applied.includes(name))
}

function unknownTables(store: Store): Kysely<unknown> {
  return store.db as unknown as Kysely<unknown>
}
