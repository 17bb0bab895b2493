// All data that the walkers' server has stored, to check that a request changed nothing.
import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import { keptBytes } from '../support/pictures.ts'
import type { World } from './support.ts'

let tables: string[] | undefined

/** All stored data as one text to compare. */
export async function stored({ server }: World): Promise<string> {
  const { store } = server
  const hash = createHash('sha256')
  // Calls are counted whatever their outcome.
  tables ??= (await store.db.introspection.getTables()).flatMap(({ name }) => (name === 'call_counts' ? [] : [name]))
  for (const name of tables) {
    const { rows } = await sql`select * from ${sql.table(name)}`.execute(store.db)
    hash.update(JSON.stringify([name, rows]))
  }
  hash.update(JSON.stringify(await keptBytes(server)))
  return hash.digest('hex')
}

/** Runs requests that must change nothing: no byte of the database, no event. */
export async function changesNothing(world: World, work: () => Promise<void>): Promise<string[]> {
  const before = await stored(world)
  world.server.events()
  await work()
  const events = world.server.events()
  const findings = events.length > 0 ? [`fired ${events.join(', ')}`] : []
  if ((await stored(world)) === before) return findings
  await world.server.rewind()
  return [...findings, 'wrote to the database']
}
