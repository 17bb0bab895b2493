// A thread with a connection of its own to a file: what it runs keeps nobody in this one from going on.

import { createRequire } from 'node:module'
import { Worker } from 'node:worker_threads'
import { LONGEST_LOG } from './sqlite-connection.ts'

interface Done {
  /** What a pragma answers. */
  row: number[]
  /** How many rows were changed, those of tables that an index keeps for itself as well. */
  changed: number
}

export interface Thread {
  /** Runs one statement after the other. Rejects when it fails. */
  run(text: string): Promise<Done>
  end(): Promise<void>
}

/** Run in the thread; of this program it has what it is given. It waits for nobody. */
const program = `
const { parentPort, workerData: { library, file, longest } } = require('node:worker_threads')
let database
let changes
const open = () => {
  database = new (require(library))(file, { timeout: 0, fileMustExist: true })
  database.pragma('synchronous = FULL')
  database.pragma('wal_autocheckpoint = 0')
  database.pragma('journal_size_limit = ' + longest)
  changes = database.prepare('select total_changes()').pluck()
}
const run = (text) => {
  if (changes === undefined) open()
  const statement = database.prepare(text)
  const before = changes.get()
  const row = statement.reader ? statement.raw().get() : void statement.run()
  return { row: row ?? [], changed: changes.get() - before }
}
parentPort.on('message', (text) => {
  if (text === null) {
    database?.close()
    parentPort.close()
    return
  }
  try {
    parentPort.postMessage({ done: run(text) })
  } catch (error) {
    parentPort.postMessage({ failure: error.message })
  }
})
`

/** Begun when it is needed, and again after it has ended: when it had nothing to do for so long, because it takes some megabytes. */
export function threadOf(file: string, { idleMs = 10_000 } = {}): Thread {
  let worker: Worker | null = null
  let idle: NodeJS.Timeout | undefined

  async function end(): Promise<void> {
    clearTimeout(idle)
    const last = worker
    worker = null
    if (last === null) return
    last.ref()
    const gone = new Promise((resolve) => last.once('exit', resolve))
    last.postMessage(null)
    await gone
  }

  function begun(): Worker {
    const library = createRequire(import.meta.url).resolve('better-sqlite3')
    const workerData = { library, file, longest: LONGEST_LOG }
    const made = new Worker(program, { eval: true, workerData, env: {}, stdin: false })
    // Whoever asked it for something is told; otherwise nobody misses it.
    made.on('error', () => undefined)
    made.once('exit', () => {
      if (worker === made) worker = null
    })
    return made
  }

  return {
    run(text) {
      clearTimeout(idle)
      worker ??= begun()
      const one = worker
      one.ref()
      return new Promise<Done>((resolve, reject) => {
        const settle = (conclude: () => void): void => {
          one.off('message', onMessage).off('error', onError).off('exit', onExit)
          one.unref()
          idle = setTimeout(() => void end(), idleMs).unref()
          conclude()
        }
        const onMessage = ({ done, failure }: { done?: Done; failure?: string }): void =>
          settle(() => (done ? resolve(done) : reject(new Error(failure))))
        const onError = (error: unknown): void => settle(() => reject(error))
        const onExit = (): void => settle(() => reject(new Error('The thread has ended.')))
        one.on('message', onMessage).on('error', onError).on('exit', onExit)
        one.postMessage(text)
      })
    },
    end,
  }
}
