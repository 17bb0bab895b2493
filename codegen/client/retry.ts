// Sends a request again when that is safe: after 429 and 503, which promise that nothing was done,
// and after a lost connection if the request may be repeated.

export interface RetryOptions {
  /** How often a request is sent again; 3 unless given. */
  retries?: number
  /** Maximum wait before a retry in seconds, even if Retry-After is longer; 30 unless given. */
  maxWaitSeconds?: number
  /** Sends the requests; `globalThis.fetch` unless given. */
  fetch?: (request: Request) => Promise<Response>
}

const firstWaitMs = 250
/** The media type of lines, which are sent as a stream. */
export const lineMediaType = 'application/x-ndjson'

export function retryingFetch({
  retries = 3,
  maxWaitSeconds = 30,
  fetch: send = (request) => globalThis.fetch(request),
}: RetryOptions): (request: Request) => Promise<Response> {
  return async (request) => {
    for (let tries = 0; ; tries++) {
      // A copy of a stream would hold all of it in memory, so lines are sent once (bulk.ts).
      const isLast = tries >= retries || request.headers.get('content-type') === lineMediaType
      // A body can be read only once, so each try sends a copy.
      const reply = await send(isLast ? request : request.clone()).catch((cause: unknown) => {
        if (isLast || request.signal.aborted || !isRepeatable(request)) throw cause
      })
      if (reply !== undefined && (isLast || !isRefusedForNow(reply))) return reply
      await reply?.body?.cancel()
      const waitMs = reply === undefined ? null : retryAfterMs(reply)
      await pause(Math.min(waitMs ?? backoffMs(tries), maxWaitSeconds * 1_000), request.signal)
    }
  }
}

/** Returns whether the server did nothing and the same request may succeed later. */
const isRefusedForNow = ({ status }: Response): boolean => status === 429 || status === 503

/**
 * Returns whether a request with an unknown outcome may be sent again. DELETE may not: if the first
 * request deleted the record, the second gets 404.
 */
const isRepeatable = ({ method, headers }: Request): boolean =>
  ['GET', 'HEAD', 'PUT'].includes(method) || (method === 'POST' && headers.has('idempotency-key'))

function retryAfterMs({ headers }: Response): number | null {
  const seconds = Number(headers.get('retry-after') ?? Number.NaN)
  return Number.isFinite(seconds) ? seconds * 1_000 : null
}

/**
 * Returns a wait that doubles with each try. A random part keeps clients from retrying at the same
 * time.
 */
const backoffMs = (tries: number): number => firstWaitMs * 2 ** tries * (0.5 + Math.random() / 2)

/** Resolves after `ms`. Rejects when the signal aborts. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    const timer = setTimeout(end, ms)
    function end(): void {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      if (signal.aborted) reject(signal.reason)
      else resolve()
    }
    signal.addEventListener('abort', end)
  })
}
