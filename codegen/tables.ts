// Renders db/tables.gen.ts, the types of the tables in a freshly migrated database. The renderer is
// imported on demand, because code that only reads the contract must not load the database.
export async function renderTableTypes(): Promise<string> {
  const { renderTables: introspect } = await import('../db/schema/introspect.ts')
  return introspect()
}
