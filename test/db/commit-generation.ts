// Creates databases for tests of `commitGeneration`, in a temporary file or in memory.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { migrate } from '../../db/migrate.ts'
import { openImage, openStore, type Store } from '../../db/store.ts'

export let folder: string
export let url: string
const stores: Store[] = []

export function begin(): void {
  folder = mkdtempSync(join(tmpdir(), 'accord-generation-'))
  url = `sqlite:${join(folder, 'accord.db')}`
}

export async function end(): Promise<void> {
  for (const store of stores.splice(0)) await store.close()
  rmSync(folder, { recursive: true, force: true })
}

export function keep(store: Store): Store {
  stores.push(store)
  return store
}

export async function opened(place: string): Promise<Store> {
  const store = keep(openStore(place === 'memory' ? 'sqlite::memory:' : url))
  await migrate(store)
  return place === 'an image' ? keep(openImage(await store.image())) : store
}

export const source = (name: string) => ({ name, name_key: name.toLowerCase(), created_at: 'now', updated_at: 'now' })
export const add = (name: string, { db }: { db: Pick<Store['db'], 'insertInto'> }) =>
  db.insertInto('lead_sources').values(source(name)).execute()

/** Returns whether the work changes the generation. */
export async function changes(store: Store, work: () => Promise<unknown>): Promise<boolean> {
  const before = store.commitGeneration()
  await work()
  return store.commitGeneration() !== before
}
