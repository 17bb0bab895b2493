// Opens the database for the limit server, with the same durability as the program and the SQL
// function that the triggers need.
import { join } from 'node:path'
import type { Database } from 'better-sqlite3'
import { Sqlite } from '../../db/sqlite/driver.ts'
import { foldText } from './limit.events.ts'

export function openDatabase(folder: string): Database {
  const database = new Sqlite(join(folder, 'data/accord.db'))
  for (const pragma of ['journal_mode = wal', 'synchronous = full', 'foreign_keys = on', 'busy_timeout = 5000'])
    database.pragma(pragma)
  database.function('fold', { deterministic: true }, (text) => (typeof text === 'string' ? foldText(text) : text))
  return database
}
