// A TTL cache for expensive lookups; concurrent callers share one pending promise.

interface Options {
  /** A rejected lookup is repeated by the next call. Without this it is cached like a result. */
  forgetsFailures?: boolean
}

/**
 * Returns a function that returns the result for `subject` if it is younger than `forMs`, else
 * calls `ask`.
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
