// db/tables.gen.ts: the types of the tables, read from a freshly migrated database rather than from the contract.
// Imported when needed only: reading a contract must not open a database.
export async function renderTables(): Promise<string> {
  const { renderTables: introspect } = await import('../db/schema/introspect.ts')
  return introspect()
}
