// Reads the number of connections that the PostgreSQL server allows.
import { sql } from 'kysely'
import type { Db } from '../store.ts'

/**
 * Returns the maximum number of connections to the database: the lowest limit of the server, the
 * role and the database. Connections of other programs are not subtracted. Behind a pooler, the
 * limit is that of the server and not that of the pooler.
 */
export async function connectionLimit(db: Db): Promise<number> {
  const { rows } = await sql<{ most: number }>`
    select least(
      current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
        - coalesce(current_setting('reserved_connections', true), '0')::int,
      (select nullif(rolconnlimit, -1) from pg_roles where rolname = current_user),
      (select nullif(datconnlimit, -1) from pg_database where datname = current_database())) as most`.execute(db)
  return rows[0]?.most ?? 0
}
