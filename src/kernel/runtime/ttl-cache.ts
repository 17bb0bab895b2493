// A TTL cache for expensive lookups. Concurrent callers wait for one shared promise.

interface Options {
  /**
   * Whether the next call repeats a rejected lookup. By default a rejection is cached like a
   * result.
   */
  forgetsFailures?: boolean
}

/**
 * Returns a function that looks up the value for an object (`subject`). It returns the cached
 * result if that is younger than `forMs` milliseconds, else it calls `ask`.
 */
export function ttlCache<T>(forMs: number, { forgetsFailures = false }: Options = {}) {
  const kept = new WeakMap<object, { at: number; answer: Promise<T> }>()
  return (subject: object, now: number, ask: () => Promise<T>): Promise<T> => {
    const last = kept.get(subject)
    if (last && now >= last.at && now - last.at < forMs) return last.answer
    const answer = ask()
    kept.set(subject, { at: now, answer })
    if (forgetsFailures)
      answer.catch(() => {
        if (kept.get(subject)?.answer === answer) kept.delete(subject)
      })
    return answer
  }
}
