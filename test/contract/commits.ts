// Records the database after each commit of a request, which is the state after a crash at that
// point.
import type Database from 'better-sqlite3'
import { sqliteImage } from '../../db/sqlite/dialect.ts'
import { Sqlite } from '../../db/sqlite/driver.ts'
import { nameOf, self } from '../../src/kernel/runtime/process-identity.ts'
import type { TestServer } from '../support/app.ts'

export interface Commits {
  /** Runs `work` and returns an image of the database after each of its commits, in order. */
  during(work: () => Promise<unknown>): Promise<Buffer[]>
  stop(): void
}

/** Watches all databases that are opened before `stop`. */
export function watchCommits(): Commits {
  const { prepare } = Sqlite.prototype
  let images: Buffer[] | null = null
  Sqlite.prototype.prepare = function (this: Database.Database, text: string) {
    const statement = prepare.call(this, text)
    if (text !== 'commit') return statement as never
    const run = statement.run.bind(statement) as () => Database.RunResult
    statement.run = () => {
      const result = run()
      images?.push(sqliteImage(this))
      return result
    }
    return statement as never
  }
  return {
    async during(work) {
      const taken: Buffer[] = []
      images = taken
      try {
        await work()
      } finally {
        images = null
      }
      return taken
    },
    stop() {
      Sqlite.prototype.prepare = prepare
    },
  }
}

/**
 * Restarts the server with the database after a crash. The process that held its idempotency keys
 * no longer exists.
 */
export async function startAgain(server: TestServer, image: Buffer): Promise<void> {
  await server.rewind(image)
  const gone = nameOf({ ...self, pid: 2 ** 22 + 1, began: '' }, 'gone')
  await server.store.db.updateTable('idempotency_keys').set({ held_by: gone }).execute()
  await server.store.db.updateTable('locks').set({ locked_by: gone }).execute()
}
