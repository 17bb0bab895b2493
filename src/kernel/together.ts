// Answers are sent one after the other, at the end of a turn of the event loop. Sent one by one, with the work on the next one in
// between, each wakes a reader on the same machine, a proxy as a rule, who has gone to sleep since the one before: that may cost as
// much as a simple request.

/** Does it at the end of this turn, or of the next one when this one is ending, with all the others. */
export type Together = (send: () => void) => void

export function together(): Together {
  const waiting = new Set<() => void>()
  function sendAll(): void {
    try {
      for (const send of waiting) {
        waiting.delete(send)
        send()
      }
    } finally {
      if (waiting.size > 0) setImmediate(sendAll)
    }
  }
  return (send) => {
    if (waiting.size === 0) setImmediate(sendAll)
    waiting.add(send)
  }
}
