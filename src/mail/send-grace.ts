// Gives an e-mail that is being sent time to finish when the worker stops.

/**
 * The time in milliseconds that a running e-mail has to finish. It must be shorter than the time
 * that a worker has to stop.
 */
const graceMs = 3000

/**
 * Returns a signal that aborts a few seconds after `signal`, so that a running e-mail can finish.
 * An interrupted e-mail may have arrived, and a retry would send a second copy.
 */
export function withGracePeriod(signal: AbortSignal): AbortSignal {
  const late = new AbortController()
  const end = (): void => void setTimeout(() => late.abort(), graceMs).unref()
  if (signal.aborted) end()
  else signal.addEventListener('abort', end, { once: true })
  return late.signal
}
