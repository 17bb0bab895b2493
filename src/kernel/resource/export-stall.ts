// Ends exports whose client has stopped reading. While an export is open, SQLite cannot restart the
// write-ahead log. A stalled export ends after a minute, or earlier when the log becomes too long.
import type { Context } from '../context.ts'

/** A client counts as stalled when it has read nothing for this number of milliseconds. */
export const stallMs = 2_000
const patienceMs = 60_000
/** The maximum number of bytes of the write-ahead log while a client is stalled. */
export const maxHeldLogBytes = 64 * 1024 * 1024
/**
 * The interval of the check in milliseconds. A commit of this process triggers the check at once;
 * the interval covers commits of other processes and the timeout.
 */
const checkMs = 250

export interface Patience {
  /** Starts the time measurement. Must be called when rows are ready for the client to read. */
  waits(): void
  taken(): void
}

/**
 * Returns an object that calls `cutOff` when the client of an export has stalled too long. Must be
 * called when the snapshot is opened, because it reads the initial length of the log.
 */
export function patienceOf({ services: { store, log }, operation, user }: Context, cutOff: () => void): Patience {
  // The log may already be longer than the maximum, from writes before the export.
  const bound = Math.max(maxHeldLogBytes, store.walBytes())
  let waitedMs = 0
  let timer: NodeJS.Timeout | undefined
  let endListening = (): void => undefined

  function isHolding(): boolean {
    if (waitedMs < stallMs) return false
    const bytes = store.walBytes()
    if (bytes <= bound) return false
    log.warn(
      { operation, user_id: user?.id ?? null, log_bytes: bytes },
      'An export was cut off: its client had stopped reading, and the log of the database grew too long.',
    )
    return true
  }

  function check(): void {
    if (waitedMs < patienceMs && !isHolding()) return
    taken()
    cutOff()
  }

  /**
   * Counts timer ticks instead of elapsed time. While the event loop is blocked, no client can
   * read, so that time must not count.
   */
  function tick(): void {
    timer = setTimeout(() => {
      waitedMs += checkMs
      tick()
      check()
    }, checkMs).unref()
  }

  function taken(): void {
    clearTimeout(timer)
    endListening()
  }

  return {
    waits() {
      waitedMs = 0
      tick()
      endListening = store.onCommit(check)
    },
    taken,
  }
}
