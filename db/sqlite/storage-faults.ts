// The faults of a database since it was opened: damaged pages, disk errors and failing maintenance.
// Every connection records here; /readyz, /metrics and the log read it.

import { Sqlite } from './driver.ts'
import { sqliteStorageFault } from './errors.ts'

/**
 * `damaged`: a page is not as SQLite wrote it. `io`: the disk failed to read, write or sync.
 * `maintenance`: maintenance.ts.
 */
export type FaultKind = 'damaged' | 'io' | 'maintenance'

export interface RecordedFault {
  kind: FaultKind
  /** Occurrences since the database was opened. */
  count: number
  /**
   * While the fault lasts: SQLite's code and the first occurrence. Damage lasts until the database
   * is opened again.
   */
  present: { code: string; since: Date } | null
}

export interface FaultLog {
  /** Records damage and disk errors, and ignores every other error. */
  record(error: unknown): void
  /** Runs the work and records the error that it throws. */
  recording<T>(work: () => T): T
  /** To be called when a write has reached the disk. */
  recordWrite(): void
  /** To be called after each round of maintenance, with null or the error. */
  recordMaintenance(error: unknown): void
  /** Whether a disk error lasts because no write has succeeded since. */
  awaitsWrite(): boolean
  /** One entry for each kind. */
  list(): RecordedFault[]
}

/** A disk error lasts until a write has succeeded and no other disk error came for this long. */
export const ioQuietMs = 60_000
/** Maintenance that another process blocks for this long is a fault. */
export const maxBusyMs = 5 * 60_000

const codeOf = (error: unknown): string => (error instanceof Sqlite.SqliteError ? error.code : 'ERROR')

function kindOf(error: unknown): 'damaged' | 'io' | null {
  const trouble = sqliteStorageFault(error)
  if (trouble === 'damaged') return 'damaged'
  return trouble === 'uncertain' || codeOf(error).startsWith('SQLITE_IOERR') ? 'io' : null
}

/** `now` returns monotonic milliseconds. */
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
