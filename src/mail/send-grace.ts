// Gives an e-mail in flight time to finish when its worker is told to stop.

/** Shorter than the time a worker has to stop. */
const graceMs = 3000

/** A signal that aborts later than `signal`: an interrupted e-mail may have arrived, and would be sent twice. */
export function withGracePeriod(signal: AbortSignal): AbortSignal {
  const late = new AbortController()
  const end = (): void => void setTimeout(() => late.abort(), graceMs).unref()
  if (signal.aborted) end()
  else signal.addEventListener('abort', end, { once: true })
  return late.signal
}
