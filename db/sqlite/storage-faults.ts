// The faults of a database since it was opened: damaged pages, errors of the disk, maintenance that fails. Statements report here,
// whichever connection ran them; /readyz, /metrics and the log ask.

import Database from 'better-sqlite3'
import { sqliteStorageFault } from './errors.ts'

/** `damaged`: a page is not what SQLite wrote. `io`: the disk refused to read, write or sync. `maintenance`: see maintenance.ts. */
export type FaultKind = 'damaged' | 'io' | 'maintenance'

export interface RecordedFault {
  kind: FaultKind
  /** How often it was met since the database was opened. */
  count: number
  /** While the fault lasts: the code of SQLite and when it was first met. Damage lasts until the database is opened again. */
  present: { code: string; since: Date } | null
}

export interface FaultLog {
  /** Remembers damage and errors of the disk, and passes over every other error. */
  record(error: unknown): void
  /** Does the work, and notes what it throws. */
  recording<T>(work: () => T): T
  /** A write has come to the disk. */
  recordWrite(): void
  /** A round of maintenance ended: with null, or with what made it fail. */
  recordMaintenance(error: unknown): void
  /** Whether an error of the disk waits for a write that proves the disk well again. */
  awaitsWrite(): boolean
  /** One of each kind. */
  list(): RecordedFault[]
}

/** An error of the disk is reported until a write has succeeded and no other error came for this long. */
export const ioQuietMs = 60_000
/** Another process that holds the lock stops maintenance for a moment; one that holds it for so long is a fault. */
export const maxBusyMs = 5 * 60_000

const codeOf = (error: unknown): string => (error instanceof Database.SqliteError ? error.code : 'ERROR')

function kindOf(error: unknown): 'damaged' | 'io' | null {
  const trouble = sqliteStorageFault(error)
  if (trouble === 'damaged') return 'damaged'
  return trouble === 'uncertain' || codeOf(error).startsWith('SQLITE_IOERR') ? 'io' : null
}

/** `now`: milliseconds that never go back. */
export function createFaultLog(now: () => number = () => performance.now()): FaultLog {
  const counts: Record<FaultKind, number> = { damaged: 0, io: 0, maintenance: 0 }
  const present = new Map<FaultKind, { code: string; since: Date }>()
  let lastIo = 0
  let isWritten = true
  let busySince: number | null = null

  function add(kind: FaultKind, code: string): void {
    counts[kind]++
    if (!present.has(kind)) present.set(kind, { code, since: new Date() })
  }

  function note(error: unknown): void {
    const kind = kindOf(error)
    if (kind === null) return
    forgetQuiet()
    add(kind, sqliteStorageFault(error) === 'uncertain' ? 'SYNC' : codeOf(error))
    if (kind === 'damaged') return
    lastIo = now()
    isWritten = false
  }

  function forgetQuiet(): void {
    if (isWritten && now() - lastIo >= ioQuietMs) present.delete('io')
  }

  function tended(error: unknown): void {
    if (error === null) {
      present.delete('maintenance')
      busySince = null
      return
    }
    note(error)
    const isBusy = sqliteStorageFault(error) === 'busy'
    if (!isBusy) busySince = null
    else busySince ??= now()
    if (!isBusy || (busySince !== null && now() - busySince >= maxBusyMs)) add('maintenance', codeOf(error))
  }

  return {
    record: note,
    recording(work) {
      try {
        return work()
      } catch (error) {
        note(error)
        throw error
      }
    },
    recordWrite() {
      isWritten = true
    },
    recordMaintenance: tended,
    awaitsWrite: () => !isWritten,
    list() {
      forgetQuiet()
      const kinds = Object.keys(counts) as FaultKind[]
      return kinds.map((kind) => ({ kind, count: counts[kind], present: present.get(kind) ?? null }))
    },
  }
}
