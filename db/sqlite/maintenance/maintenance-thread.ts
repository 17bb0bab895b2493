// A thread with a connection of its own to a file: what it runs keeps nobody in this one from going on.

import { createRequire } from 'node:module'
import { Worker } from 'node:worker_threads'
import Database from 'better-sqlite3'
import { maxWalBytes } from '../connection.ts'

interface Done {
  /** What a pragma answers. */
  row: number[]
  rows: Record<string, unknown>[]
  /** How many rows were changed, those of tables that an index keeps for itself as well. */
  changed: number
}

/** Who runs statements, one at a time. */
export interface MaintenanceThread {
  /** Rejects when it fails. */
  run(text: string, parameters?: readonly unknown[]): Promise<Done>
  /** There is nothing to do for now. */
  idle(): void
  end(): Promise<void>
}

/** Run in the thread; of this program it has what it is given. For another process it waits a moment. */
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

interface Told extends Failed {
  done?: Done
}

/** An error of SQLite keeps its code. */
const errorOf = ({ failure = '', code = '' }: Failed): Error =>
  code.startsWith('SQLITE_') ? new Database.SqliteError(failure, code) : new Error(failure)

/**
 * Begun when it is needed, and again after it has ended: when it has rested for so long, because it takes some megabytes. With
 * `isReading` the file is opened read-only. `isUnsafe`: the tables that full text keeps for itself can be changed.
 */
export function createMaintenanceThread(
  file: string,
  { idleMs = 10_000, isReading = false, isUnsafe = false } = {},
): MaintenanceThread {
  let worker: Worker | null = null
  let ending: Promise<unknown> = Promise.resolve()
  let idle: NodeJS.Timeout | undefined

  function begun(): Worker {
    const library = createRequire(import.meta.url).resolve('better-sqlite3')
    const workerData = { library, file, longest: maxWalBytes, isReading, isUnsafe }
    const made = new Worker(program, { eval: true, workerData, env: {}, execArgv: [], stdin: false })
    // Whoever asked it for something is told; otherwise nobody misses it.
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
      worker ??= begun()
      const one = worker
      one.ref()
      const listening = new AbortController()
      const { signal } = listening
      try {
        return await new Promise<Done>((resolve, reject) => {
          const told = ({ done, ...failed }: Told): void => (done ? resolve(done) : reject(errorOf(failed)))
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
