// How long a mail that is on its way is waited for when the worker that sends it is told to stop.

/** Less than a worker has to stop. */
const graceMs = 3000

/** A worker that stops lets a conversation come to its end: what is broken off may have arrived, and would be sent again. */
export function withGracePeriod(signal: AbortSignal): AbortSignal {
  const late = new AbortController()
  const end = (): void => void setTimeout(() => late.abort(), graceMs).unref()
  if (signal.aborted) end()
  else signal.addEventListener('abort', end, { once: true })
  return late.signal
}
