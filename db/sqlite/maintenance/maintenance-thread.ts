// Runs statements on a worker thread with its own connection to the database file. These statements
// do not block the event loop.

import { createRequire } from 'node:module'
import { Worker } from 'node:worker_threads'
import Database from 'better-sqlite3'
import { maxWalBytes } from '../connection.ts'

interface Result {
  /** The values of the first row. A pragma returns its result in this row. */
  row: number[]
  rows: Record<string, unknown>[]
  /** The number of changed rows, including those of FTS5's own tables. */
  changed: number
}

export interface MaintenanceThread {
  /**
   * Runs a statement on the thread. The caller must wait for one statement before the next. Rejects
   * with the error of the statement.
   */
  run(text: string, parameters?: readonly unknown[]): Promise<Result>
  /** Tells the thread that no work follows. The thread ends after `idleMs`. */
  idle(): void
  end(): Promise<void>
}

/** The source code of the thread. A statement waits up to 100 ms for a lock of another process. */
const program = `
const { parentPort, workerData: { library, file, longest, isReading, isUnsafe } } = require('node:worker_threads')
let database
let changes
const open = () => {
  database = new (require(library))(file, { timeout: 100, fileMustExist: true, readonly: isReading })
  if (isUnsafe) database.unsafeMode()
  database.pragma('synchronous = FULL')
  database.pragma('wal_autocheckpoint = 0')
  database.pragma('journal_size_limit = ' + longest)
  changes = database.prepare('select total_changes()').pluck()
}
const run = ([text, ...parameters]) => {
  if (changes === undefined) open()
  const statement = database.prepare(text)
  const before = changes.get()
  const rows = statement.reader ? statement.all(...parameters) : void statement.run(...parameters)
  return { row: Object.values(rows?.[0] ?? {}), rows: rows ?? [], changed: changes.get() - before }
}
parentPort.on('message', (query) => {
  if (query === null) {
    database?.close()
    parentPort.close()
    return
  }
  try {
    parentPort.postMessage({ done: run(query) })
  } catch (error) {
    parentPort.postMessage({ failure: error.message, code: error.code })
  }
})
`

interface Failed {
  failure?: string
  code?: string
}

interface Message extends Failed {
  done?: Result
}

/** Restores an error of the thread. An SQLite error gets its class and code back. */
const errorOf = ({ failure = '', code = '' }: Failed): Error =>
  code.startsWith('SQLITE_') ? new Database.SqliteError(failure, code) : new Error(failure)

/**
 * Returns a thread for a database file. The worker starts with the first statement and ends
 * `idleMs` after `idle`, because a worker takes some megabytes. A later statement starts a new
 * worker. `isReading` opens the file read-only. `isUnsafe` allows changes in FTS5's own tables.
 */
export function createMaintenanceThread(
  file: string,
  { idleMs = 10_000, isReading = false, isUnsafe = false } = {},
): MaintenanceThread {
  let worker: Worker | null = null
  let ending: Promise<unknown> = Promise.resolve()
  let idle: NodeJS.Timeout | undefined

  function startWorker(): Worker {
    const library = createRequire(import.meta.url).resolve('better-sqlite3')
    const workerData = { library, file, longest: maxWalBytes, isReading, isUnsafe }
    const made = new Worker(program, { eval: true, workerData, env: {}, execArgv: [], stdin: false })
    // A running statement listens for the error itself. At any other time the error does not
    // matter.
    made.on('error', () => undefined)
    made.once('exit', () => {
      if (worker === made) worker = null
    })
    return made
  }

  async function end(): Promise<void> {
    clearTimeout(idle)
    if (worker !== null) {
      const last = worker
      worker = null
      last.ref()
      ending = new Promise((resolve) => last.once('exit', resolve))
      last.postMessage(null)
    }
    await ending
  }

  return {
    async run(text, parameters = []) {
      clearTimeout(idle)
      worker ??= startWorker()
      const one = worker
      one.ref()
      const listening = new AbortController()
      const { signal } = listening
      try {
        return await new Promise<Result>((resolve, reject) => {
          const told = ({ done, ...failed }: Message): void => (done ? resolve(done) : reject(errorOf(failed)))
          const gone = (): void => reject(new Error('The thread has ended.'))
          const listeners = { message: told, error: reject, exit: gone }
          for (const [name, listener] of Object.entries(listeners)) {
            one.on(name, listener)
            signal.addEventListener('abort', () => one.off(name, listener))
          }
          one.postMessage([text, ...parameters])
        })
      } finally {
        listening.abort()
        one.unref()
      }
    },
    idle() {
      clearTimeout(idle)
      if (worker !== null) idle = setTimeout(() => void end(), idleMs).unref()
    },
    end,
  }
}
