// Gives an e-mail that is being sent time to finish when its worker stops.

/** Shorter than the time a worker has to stop. */
const graceMs = 3000

/**
 * Returns a signal that aborts a few seconds after `signal`. An interrupted e-mail may have
 * arrived, and a retry would send it twice.
 */
export function withGracePeriod(signal: AbortSignal): AbortSignal {
  const late = new AbortController()
  const end = (): void => void setTimeout(() => late.abort(), graceMs).unref()
  if (signal.aborted) end()
  else signal.addEventListener('abort', end, { once: true })
  return late.signal
}
