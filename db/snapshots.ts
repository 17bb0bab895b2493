// A read-only snapshot of a database, for long reads while other connections write.
import type { Compilable, Kysely } from 'kysely'
import type { DB } from './tables.gen.ts'

export interface DatabaseSnapshot {
  readonly db: Kysely<DB>
  /** Streams the rows of the query. `db` can run other queries during the stream. */
  each<Row>(query: Compilable<Row>): AsyncIterable<Row>
  close(): Promise<void>
}
