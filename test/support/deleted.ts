// Deletes records that stored rules name. The API refuses such a deletion, but a rule can still
// lose a record: by a save at the same moment, or before references were stored.
import type { Reply, TestServer } from './app.ts'

export async function deleteNamed({ admin, store }: TestServer, path: string): Promise<Reply> {
  await store.db.deleteFrom('stored_references').execute()
  return admin.delete(path)
}
