// Opens the database for the limit server, with the same durability as the program and the SQL
// function that the triggers need.
import { join } from 'node:path'
import type { Database } from 'better-sqlite3'
import { Sqlite } from '../../db/sqlite/driver.ts'
import { withFunctions } from '../../db/sqlite/functions.ts'

export function openDatabase(folder: string): Database {
  const database = new Sqlite(join(folder, 'data/accord.db'))
  for (const pragma of ['journal_mode = wal', 'synchronous = full', 'foreign_keys = on', 'busy_timeout = 5000'])
    database.pragma(pragma)
  withFunctions(database)
  return database
}
