// Watches whether the client of an export reads. While an export is open, SQLite keeps every replaced page in the log of the
// database, which cannot begin anew. A client that has stopped reading is cut off after a minute, or as soon as the log is too long.
import type { Context } from '../context.ts'

/** A client that takes nothing for this long does not read, as far as the log is concerned. */
export const stallMs = 2_000
const patienceMs = 60_000
/** How long the log may become for the sake of a client that does not read. */
export const maxHeldLogBytes = 64 * 1024 * 1024
/** Each commit of this process is followed by a look; this is for time that passes, and for the commits of other processes. */
const lookMs = 250

export interface Patience {
  /** Rows wait to be taken. */
  waits(): void
  taken(): void
}

/** To be made when the snapshot is opened. */
export function patienceOf({ services: { store, log }, operation, user }: Context, cutOff: () => void): Patience {
  // This export does not hold the pages that were in the log before it began.
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

  /** Counts turns of the event loop, not time by the clock: while the server itself is held up, no client can read. */
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
