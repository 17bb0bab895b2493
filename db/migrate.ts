// Applies the pending migrations in order, in one transaction. Copies an existing database first;
// only this copy can undo a migration. The list of migrations is written out, so that the compiled
// code contains every migration.

import { type Kysely, sql } from 'kysely'
import type { Dialect } from './dialect.ts'
import type { Db, Store } from './store.ts'

/** The functions of the program that migrations may call. */
export interface MigrationTools {
  /** Encrypts a plain text with the key of the installation. */
  readonly seal: (text: string) => string
  /** Rewrites all search documents after the last migration. Code generation and tests omit it. */
  readonly rebuildSearch?: (db: Db, dialect: Dialect) => Promise<unknown>
  /** Runs after the migrations and `rebuildSearch`, in the same transaction. */
  readonly finish?: (db: Db, dialect: Dialect) => Promise<unknown>
}

/** The default tools, for a database without values to encrypt. */
export const noTools: MigrationTools = {
  seal() {
    throw new Error('There are values to encrypt, but no secret.')
  },
}

export interface Migration {
  readonly name: string
  readonly up: (db: Kysely<unknown>, dialect: Dialect, tools: MigrationTools) => Promise<void>
}

/**
 * Returns a migration that loads its module when it runs, so that a start without pending
 * migrations loads none.
 */
const step = (name: string, load: () => Promise<Pick<Migration, 'up'>>): Migration => ({
  name,
  up: async (db, dialect, tools) => (await load()).up(db, dialect, tools),
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
  step('0006_work', () => import('./migrations/0006_work.ts')),
  step('0007_automation', () => import('./migrations/0007_automation.ts')),
  step('0008_events', () => import('./migrations/0008_events.ts')),
  step('0009_files', () => import('./migrations/0009_files.ts')),
  step('0010_inventory', () => import('./migrations/0010_inventory.ts')),
  step('0011_quotes', () => import('./migrations/0011_quotes.ts')),
  step('0012_emails', () => import('./migrations/0012_emails.ts')),
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
  step('0051_import_formats', () => import('./migrations/0051_import_formats.ts')),
  step('0052_campaign_audiences', () => import('./migrations/0052_campaign_audiences.ts')),
  step('0053_sending_state', () => import('./migrations/0053_sending_state.ts')),
  step('0054_stored_references', () => import('./migrations/0054_stored_references.ts')),
  step('0055_line_quantities', () => import('./migrations/0055_line_quantities.ts')),
  step('0056_archives_without_events', () => import('./migrations/0056_archives_without_events.ts')),
  step('0057_campaign_changer', () => import('./migrations/0057_campaign_changer.ts')),
  step('0058_sign_in_devices', () => import('./migrations/0058_sign_in_devices.ts')),
  step('0062_import_rules', () => import('./migrations/0062_import_rules.ts')),
  step('0063_reply_addresses', () => import('./migrations/0063_reply_addresses.ts')),
  step('0064_search_folding', () => import('./migrations/0064_search_folding.ts')),
  step('0065_bounced_emails', () => import('./migrations/0065_bounced_emails.ts')),
  step('0066_form_submissions', () => import('./migrations/0066_form_submissions.ts')),
  step('0067_invitation_answers', () => import('./migrations/0067_invitation_answers.ts')),
  step('0068_send_times', () => import('./migrations/0068_send_times.ts')),
  step('0069_import_names', () => import('./migrations/0069_import_names.ts')),
  step('0070_all_day_activities', () => import('./migrations/0070_all_day_activities.ts')),
]

/**
 * Applies the pending migrations in one transaction and returns their names. After a failure the
 * database is unchanged.
 */
export async function migrate(store: Store, known = migrations, tools = noTools): Promise<string[]> {
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
          await up(db as unknown as Kysely<unknown>, store.dialect, tools)
          await db.insertInto('migrations').values({ name, applied_at: new Date().toISOString() }).execute()
        }
        // The rebuild reads the newest tables, so it runs after the last migration.
        if (due.length > 0) await tools.rebuildSearch?.(db, store.dialect)
        await tools.finish?.(db, store.dialect)
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

/** The database was migrated by a newer version of the program. */
export class NewerDatabaseError extends Error {
  constructor(unknown: readonly string[]) {
    super(
      `This database was migrated by a newer version of Accord CRM (${unknown.join(', ')}). Install that version, or restore a backup made before it.`,
    )
    this.name = 'NewerDatabaseError'
  }
}

/**
 * Returns the names of the pending migrations in order. Throws `NewerDatabaseError` for a database
 * that a newer version of the program has migrated.
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
 * `NewerDatabaseError` for an unknown name.
 */
export function pendingAfter(applied: readonly string[], known = migrations): string[] {
  const unknown = applied.filter((name) => !known.some((migration) => migration.name === name))
  if (unknown.length > 0) throw new NewerDatabaseError(unknown)
  return known.map(({ name }) => name).filter((name) => !applied.includes(name))
}

function unknownTables(store: Store): Kysely<unknown> {
  return store.db as unknown as Kysely<unknown>
}
