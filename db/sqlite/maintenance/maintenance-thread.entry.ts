// The thread of maintenance-thread.ts. Runs one statement after another on its own connection and
// posts each result. Opens the file at the first statement.
import { createRequire } from 'node:module'
import { parentPort, workerData } from 'node:worker_threads'
import type Database from 'better-sqlite3'
import { withFunctions } from '../functions.ts'

export interface ThreadDatabase {
  /** The path of better-sqlite3 (driver.ts). */
  library: string
  file: string
  maxWalBytes: number
  isReading: boolean
  isUnsafe: boolean
}

/** A statement with its parameters. Null ends the thread. */
export type ThreadTask = readonly [text: string, ...parameters: unknown[]] | null

export interface StatementResult {
  /** The values of the first row, as pragmas return them. */
  row: number[]
  rows: Record<string, unknown>[]
  /** The number of changed rows, including those of FTS5's own tables. */
  changed: number
}

export type ThreadAnswer = { done: StatementResult } | { failure: string; code: string }

/** The maximum wait for a lock of another process. */
const maxLockWaitMs = 100

interface Connection {
  database: Database.Database
  totalChanges: Database.Statement<[], number>
}

function openDatabase({ library, file, maxWalBytes, isReading, isUnsafe }: ThreadDatabase): Connection {
  const Sqlite = createRequire(import.meta.url)(library) as typeof Database
  const database = withFunctions(new Sqlite(file, { timeout: maxLockWaitMs, fileMustExist: true, readonly: isReading }))
  if (isUnsafe) database.unsafeMode()
  database.pragma('synchronous = FULL')
  database.pragma('wal_autocheckpoint = 0')
  database.pragma(`journal_size_limit = ${maxWalBytes}`)
  return { database, totalChanges: database.prepare<[], number>('select total_changes()').pluck() }
}

let connection: Connection | undefined

function runStatement(text: string, parameters: readonly unknown[]): StatementResult {
  connection ??= openDatabase(workerData as ThreadDatabase)
  const { database, totalChanges } = connection
  const statement = database.prepare<unknown[], Record<string, unknown>>(text)
  const before = totalChanges.get() ?? 0
  let rows: Record<string, unknown>[] = []
  if (statement.reader) rows = statement.all(...parameters)
  else statement.run(...parameters)
  const row = Object.values(rows[0] ?? {}) as number[]
  return { row, rows, changed: (totalChanges.get() ?? 0) - before }
}

function answerOf(text: string, parameters: readonly unknown[]): ThreadAnswer {
  try {
    return { done: runStatement(text, parameters) }
  } catch (error) {
    const { message, code } = error as Error & { code?: unknown }
    return { failure: message, code: typeof code === 'string' ? code : '' }
  }
}

parentPort?.on('message', (task: ThreadTask) => {
  if (task === null) {
    connection?.database.close()
    parentPort?.close()
    return
  }
  const [text, ...parameters] = task
  parentPort?.postMessage(answerOf(text, parameters))
})
