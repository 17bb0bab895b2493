// The database as the limit server opens it: as durable as that of the program, with the one function its tables ask for.
import { join } from 'node:path'
import Sqlite, { type Database } from 'better-sqlite3'
import { foldText } from './limit.events.ts'

export function openDatabase(folder: string): Database {
  const database = new Sqlite(join(folder, 'data/accord.db'))
  for (const pragma of ['journal_mode = wal', 'synchronous = full', 'foreign_keys = on', 'busy_timeout = 5000'])
    database.pragma(pragma)
  database.function('fold', { deterministic: true }, (text) => (typeof text === 'string' ? foldText(text) : text))
  return database
}
