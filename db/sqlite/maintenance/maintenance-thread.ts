// A worker thread with a connection of its own to the database file. Its statements do not block
// the event loop.

import { Worker } from 'node:worker_threads'
import { maxWalBytes } from '../connection.ts'
import { Sqlite, sqliteLibrary } from '../driver.ts'

interface Result {
  /** The values of the first row, as pragmas return them. */
  row: number[]
  rows: Record<string, unknown>[]
  /** The number of changed rows, including those of FTS5's own tables. */
  changed: number
}

export interface MaintenanceThread {
  /** Runs a statement; one at a time. Rejects with its error. */
  run(text: string, parameters?: readonly unknown[]): Promise<Result>
  /** Tells the thread that no work follows; it ends after a while. */
  idle(): void
  end(): Promise<void>
}

/** The code of the thread. It waits up to 100 ms for a lock of another process. */
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

/** Restores the error class of SQLite, so that its code is kept. */
const errorOf = ({ failure = '', code = '' }: Failed): Error =>
  code.startsWith('SQLITE_') ? new Sqlite.SqliteError(failure, code) : new Error(failure)

/**
 * The worker starts with the first statement and ends after `idleMs` without work, because it takes
 * some megabytes; a later statement starts it again. `isReading` opens the file read-only.
 * `isUnsafe` allows changes in FTS5's own tables.
 */
export function createMaintenanceThread(
  file: string,
  { idleMs = 10_000, isReading = false, isUnsafe = false } = {},
): MaintenanceThread {
  let worker: Worker | null = null
  let ending: Promise<unknown> = Promise.resolve()
  let idle: NodeJS.Timeout | undefined

  function startWorker(): Worker {
    const workerData = { library: sqliteLibrary, file, longest: maxWalBytes, isReading, isUnsafe }
    const made = new Worker(program, { eval: true, workerData, env: {}, execArgv: [], stdin: false })
    // A running statement rejects through its own listener; without one the error does not matter.
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
