// Reads all stored rows, to check that a request changed nothing.
import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { sql } from 'kysely'
import type { Store } from '../../db/store.ts'
import { type Image, openImage } from '../support/engine.ts'
import { keptBytes } from '../support/pictures.ts'
import type { World } from './support.ts'

let tables: string[] | undefined

/** Returns a hash over the rows of all tables. */
export async function stored({ db }: Store): Promise<string> {
  const hash = createHash('sha256')
  // Without `call_counts`, because refused calls are also counted.
  tables ??= (await db.introspection.getTables()).flatMap(({ name }) => (name === 'call_counts' ? [] : [name]))
  for (const name of tables) {
    const { rows } = await sql`select * from ${sql.table(name)}`.execute(db)
    hash.update(JSON.stringify([name, rows]))
  }
  return hash.digest('hex')
}

async function storedIn(image: Image): Promise<string> {
  const store = await openImage(image)
  try {
    return await stored(store)
  } finally {
    await store.close()
  }
}

/**
 * Returns whether two images have the same rows. Usually their bytes are equal, which is a fast
 * check.
 */
const holdSameRows = async (one: Image, other: Image): Promise<boolean> =>
  one.equals(other) || (await storedIn(one)) === (await storedIn(other))

/** Runs requests and returns the rows, files and events that they changed. */
export async function changesNothing({ server }: World, work: () => Promise<void>): Promise<string[]> {
  const [image, files] = [await server.store.image(), await keptBytes(server)]
  server.events()
  await work()
  const events = server.events()
  const findings = events.length > 0 ? [`fired ${events.join(', ')}`] : []
  const isSame =
    isDeepStrictEqual(await keptBytes(server), files) && (await holdSameRows(image, await server.store.image()))
  if (isSame) return findings
  await server.rewind()
  return [...findings, 'wrote to the database or to the files']
}
