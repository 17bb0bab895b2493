// When a request that was read is looked at: at once, unless connections are coming. Node takes one of them in each turn of the event
// loop. Where hundreds come together, as after a moment in which the machine stood still, the last of them waits for as many turns, and
// every turn lasts until all that was read in it is refused. So as long as they come turns are kept short, and what was read waits.
import { fineStopwatch } from './clock.ts'

export interface Arrivals {
  /** A connection was taken. */
  connection(): void
  /** Looks now, or within the next turns of the event loop. */
  request(look: () => void): void
  /** Whether connections are being taken, or what was read meanwhile still waits. */
  areComing(): boolean
}

/**
 * How long is spent on looking in a turn in which a connection was taken, more of it for each that waits, and in a turn in which none
 * was. Tried out under floods of twice and three times what the server can do: with less the line grows, with more connections wait.
 */
const whileComingMs = 0.5
const moreForEachMs = 0.002
const afterwardsMs = 5
/** How many wait at most; a client may send many on one connection, and each may hold 64 KiB of a body that was read with it. */
const mostHeld = 2_000

export function createArrivals(stopwatch = fineStopwatch): Arrivals {
  const held = new Set<() => void>()
  let hasTaken = false
  let areComing = false

  function endTurn(): void {
    const spent = stopwatch()
    const most = hasTaken ? whileComingMs + held.size * moreForEachMs : afterwardsMs
    try {
      for (const look of held) {
        held.delete(look)
        look()
        if (spent() >= most) break
      }
    } finally {
      areComing = hasTaken || held.size > 0
      hasTaken = false
      if (areComing) setImmediate(endTurn)
    }
  }

  return {
    connection() {
      hasTaken = true
      if (areComing) return
      areComing = true
      setImmediate(endTurn)
    },
    request(look) {
      if (areComing && held.size < mostHeld) held.add(look)
      else look()
    },
    areComing: () => areComing,
  }
}
