// db/tables.gen.ts: the types of the tables, read from a freshly migrated database. The import is
// on demand, because reading a contract must not load the database.
export async function renderTableTypes(): Promise<string> {
  const { renderTables: introspect } = await import('../db/schema/introspect.ts')
  return introspect()
}
