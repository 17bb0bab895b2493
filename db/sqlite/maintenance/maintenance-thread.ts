// A worker thread (maintenance-thread.entry.ts) with its own connection to the database file, whose
// statements do not block the event loop.

import type { Worker } from 'node:worker_threads'
import { entryAt, startThread } from '../../entry-file.ts'
import { maxWalBytes } from '../connection.ts'
import { Sqlite, sqliteLibrary } from '../driver.ts'
import type { StatementResult, ThreadAnswer, ThreadDatabase, ThreadTask } from './maintenance-thread.entry.ts'

export interface MaintenanceThread {
  /** Runs a statement after those of earlier calls. */
  run(text: string, parameters?: readonly unknown[]): Promise<StatementResult>
  /** Ends the worker after `idleMs`, unless a statement follows. */
  idle(): void
  end(): Promise<void>
}

const program = entryAt(import.meta.url, './maintenance-thread.entry')

/**
 * Returns the error with the class `SqliteError`, because messages between threads lose the class.
 */
const errorOf = ({ failure, code = '' }: { failure: string; code?: string }): Error =>
  code.startsWith('SQLITE_') ? new Sqlite.SqliteError(failure, code) : new Error(failure)

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
  let last: Promise<unknown> = Promise.resolve()
  let idle: NodeJS.Timeout | undefined

  function startWorker(): Worker {
    const made = startThread<ThreadDatabase>(program, {
      library: sqliteLibrary,
      file,
      maxWalBytes,
      isReading,
      isUnsafe,
    })
    // `run` has its own listener. Without this one, an error between statements would end the
    // process.
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
      last.postMessage(null satisfies ThreadTask)
    }
    await ending
  }

  async function run(text: string, parameters: readonly unknown[]): Promise<StatementResult> {
    clearTimeout(idle)
    worker ??= startWorker()
    const one = worker
    one.ref()
    const listening = new AbortController()
    const { signal } = listening
    try {
      return await new Promise<StatementResult>((resolve, reject) => {
        const settle = (answer: ThreadAnswer): void =>
          'done' in answer ? resolve(answer.done) : reject(errorOf(answer))
        const fail = (): void => reject(new Error('The thread has ended.'))
        const listeners = { message: settle, error: reject, exit: fail }
        for (const [name, listener] of Object.entries(listeners)) {
          one.on(name, listener)
          signal.addEventListener('abort', () => one.off(name, listener))
        }
        one.postMessage([text, ...parameters] satisfies ThreadTask)
      })
    } finally {
      listening.abort()
      one.unref()
    }
  }

  return {
    run(text, parameters = []) {
      const result = last.then(() => run(text, parameters))
      last = result.catch(() => undefined)
      return result
    },
    idle() {
      clearTimeout(idle)
      if (worker !== null) idle = setTimeout(() => void end(), idleMs).unref()
    },
    end,
  }
}
