// Answers are sent one after the other, between two turns of the event loop. Sent one by one, with the work on the next one in between,
// each wakes a reader on the same machine, a proxy as a rule, who has gone to sleep since the one before: that may cost as much as a
// simple request.

/** Does it before the next turn of the event loop, or, asked for between two turns as by most requests, before the one after that. */
export type Together = (send: () => void) => void

/** So many are sent at once: they are held in memory, and Node takes more requests from a connection until answers are sent on it. */
const most = 100

export function together(): Together {
  // No set: of one that is filled and emptied for good, engines keep alive what once was in it (turns.ts).
  const waiting: (() => void)[] = []
  let isDue = false

  function sendAll(): void {
    isDue = false
    const all = waiting.splice(0)
    let sent = 0
    try {
      while (sent < all.length) all[sent++]?.()
    } finally {
      if (sent < all.length) waiting.unshift(...all.slice(sent))
      if (waiting.length > 0) sendSoon()
    }
  }

  function sendSoon(): void {
    if (isDue) return
    isDue = true
    setImmediate(sendAll)
  }

  return (send) => {
    waiting.push(send)
    if (waiting.length >= most) sendAll()
    else sendSoon()
  }
}
