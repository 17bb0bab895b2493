// What costs to find out is not found out for everybody who asks: an answer holds for a while, also while it is still on its way.

interface Options {
  /** Ask again at once after a failure; else that is the answer as long as any other. */
  forgetsFailures?: boolean
}

/** Answers what was found out about `subject` less than `forMs` ago, else asks. */
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
