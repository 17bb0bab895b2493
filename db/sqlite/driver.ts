// Loads the version of better-sqlite3 that this Node can run. Version 13 needs Node-API 10 and
// crashes on Node 20. Version 12 aborts on Node 24 when Node frees a prepared statement. All other
// files import the library from here, because two copies of SQLite in one process would release
// each other's file locks.
import { createRequire } from 'node:module'
import type Database from 'better-sqlite3'

const load = createRequire(import.meta.url)
/** The library in the folder that node-20/install.mjs fills. */
const version12 = '.accord-node-20/node_modules/better-sqlite3'

/** The path of the library, for threads that load it themselves. */
export const sqliteLibrary = findLibrary()

export const Sqlite = load(sqliteLibrary) as typeof Database

/** Throws if the library is not installed. */
function findLibrary(): string {
  try {
    return load.resolve(Number(process.versions.napi) >= 10 ? 'better-sqlite3' : version12)
  } catch (cause) {
    throw new Error(
      'better-sqlite3 is not installed for this version of Node. Run npm ci again, or npm rebuild accord-crm where accord-crm is a dependency. Node 20 may need Python, make and g++; newer ones do not.',
      { cause },
    )
  }
}
