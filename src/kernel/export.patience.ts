// Watches how an export is taken. As long as one is open, the database keeps every page that was replaced: in its log, which cannot
// begin anew. A client that has stopped reading is cut off after a minute, or as soon as the log has grown too long.
import type { Context } from './context.ts'

/** A client that takes nothing for this long does not read, as far as the log is concerned. */
const stallMs = 2_000
const patienceMs = 60_000
/** How long the log may become for the sake of a client that does not read. */
export const maxHeldLogBytes = 64 * 1024 * 1024
const lookMs = 250

export interface Patience {
  /** Rows wait to be taken. */
  waits(): void
  taken(): void
}

/** To be made when the snapshot is opened. */
export function patienceOf({ services: { store, log }, operation, user }: Context, cutOff: () => void): Patience {
  // This export does not hold the pages that were in the log before it began.
  const bound = Math.max(maxHeldLogBytes, store.logBytes())
  let timer: NodeJS.Timeout | undefined

  function isHolding(waitedMs: number): boolean {
    const bytes = store.logBytes()
    if (waitedMs < stallMs || bytes <= bound) return false
    log.warn(
      { operation, user_id: user?.id ?? null, log_bytes: bytes },
      'An export was cut off: its client had stopped reading, and the log of the database grew too long.',
    )
    return true
  }

  function lookAfter(waitedMs: number): void {
    timer = setTimeout(() => {
      if (waitedMs >= patienceMs || isHolding(waitedMs)) cutOff()
      else lookAfter(waitedMs + lookMs)
    }, lookMs).unref()
  }

  return { waits: () => lookAfter(lookMs), taken: () => clearTimeout(timer) }
}
