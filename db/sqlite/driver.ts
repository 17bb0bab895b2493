// Loads the version of better-sqlite3 that this Node can run. Version 13 needs Node-API 10 and
// crashes on Node 20. Version 12 aborts on Node 24 when Node frees a prepared statement. All other
// files import the library from here, because two copies of SQLite in one process would release
// each other's file locks.
import { createRequire } from 'node:module'
import type Database from 'better-sqlite3'

const load = createRequire(import.meta.url)
const name = Number(process.versions.napi) >= 10 ? 'better-sqlite3' : 'better-sqlite3-12'

/** The path of the library, for threads that load it themselves. */
export const sqliteLibrary = findLibrary()

export const Sqlite = load(sqliteLibrary) as typeof Database

/**
 * Throws if the package is missing. Version 12 is an optional dependency: npm skips it when its
 * binary can be neither downloaded nor compiled.
 */
function findLibrary(): string {
  try {
    return load.resolve(name)
  } catch (cause) {
    throw new Error(
      `The package ${name} is not installed. Run npm ci with Node 24; Node 20 may need Python and a C++ compiler.`,
      { cause },
    )
  }
}
