// Ends exports whose client has stopped reading. An open export keeps SQLite from restarting the
// write-ahead log. A stalled client is disconnected after a minute, or as soon as the log is too
// long.
import type { Context } from '../context.ts'

/** A client that reads nothing for this long counts as stalled. */
export const stallMs = 2_000
const patienceMs = 60_000
/** The maximum bytes of the write-ahead log while a client is stalled. */
export const maxHeldLogBytes = 64 * 1024 * 1024
/**
 * Commits of this process check at once; this interval covers commits of other processes and the
 * timeout.
 */
const lookMs = 250

export interface Patience {
  /** Called when rows are ready for the client. */
  waits(): void
  taken(): void
}

/** Create it when the snapshot is opened. */
export function patienceOf({ services: { store, log }, operation, user }: Context, cutOff: () => void): Patience {
  // The log may already hold pages from before the export.
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

  function look(): void {
    if (waitedMs < patienceMs && !isHolding()) return
    taken()
    cutOff()
  }

  /**
   * Counts ticks of the event loop instead of time: while the server is blocked, no client can
   * read.
   */
  function tick(): void {
    timer = setTimeout(() => {
      waitedMs += lookMs
      tick()
      look()
    }, lookMs).unref()
  }

  function taken(): void {
    clearTimeout(timer)
    endListening()
  }

  return {
    waits() {
      waitedMs = 0
      tick()
      endListening = store.onCommit(look)
    },
    taken,
  }
}
