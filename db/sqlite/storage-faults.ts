// Records the faults of a database since it was opened: damaged pages, disk errors and failed
// maintenance. All connections of a store share one fault log. /readyz, /metrics and the server's
// log report the faults.

import { Sqlite } from './driver.ts'
import { sqliteStorageFault } from './errors.ts'

/**
 * `damaged`: a page of the file is corrupt. `io`: the disk failed to read, write or sync.
 * `maintenance`: a round of maintenance failed (maintenance.ts).
 */
export type FaultKind = 'damaged' | 'io' | 'maintenance'

export interface RecordedFault {
  kind: FaultKind
  /** The number of occurrences since the database was opened. */
  count: number
  /**
   * The error code and the time of the first occurrence, or null when the fault has ended. Damage
   * lasts until the database is opened again.
   */
  present: { code: string; since: Date } | null
}

export interface FaultLog {
  /** Records damage and disk errors, and ignores every other error. */
  record(error: unknown): void
  /** Runs the work and records the error that it throws. */
  recording<T>(work: () => T): T
  /** Records that a write has reached the disk. */
  recordWrite(): void
  /** Records the result of a round of maintenance: null or the error. */
  recordMaintenance(error: unknown): void
  /** Returns whether no write has succeeded since the last disk error. */
  awaitsWrite(): boolean
  /** Returns one entry for each kind of fault. */
  list(): RecordedFault[]
}

/**
 * A disk error ends after a successful write, and at least this many milliseconds after the last
 * disk error.
 */
export const ioQuietMs = 60_000
/** If a lock of another process blocks maintenance for this many milliseconds, that is a fault. */
export const maxBusyMs = 5 * 60_000

const codeOf = (error: unknown): string => (error instanceof Sqlite.SqliteError ? error.code : 'ERROR')

function kindOf(error: unknown): 'damaged' | 'io' | null {
  const trouble = sqliteStorageFault(error)
  if (trouble === 'damaged') return 'damaged'
  return trouble === 'uncertain' || codeOf(error).startsWith('SQLITE_IOERR') ? 'io' : null
}

/** Returns an empty fault log. `now` returns monotonic milliseconds. */
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
