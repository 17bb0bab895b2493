// Tracks the open event streams of this server: limits their number per token or session, wakes
// them and ends them. A commit of this process wakes the streams at once. A check every second
// detects commits of other processes.
import type { Services } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import { newestEvent } from '../../kernel/write/event-log.ts'

const maxPerReader = 5

export interface Stream {
  /** The token or session that reads the stream, for example `token 7`. */
  reader: string
  wake(): void
  end(): void
}

interface Streams {
  open: Set<Stream>
  /** Stops waking the streams. Undefined while no stream is open. */
  rest: (() => void) | undefined
}

const streamsOf = new WeakMap<Services, Streams>()

/**
 * Adds a stream. Returns a function that removes the stream again. Throws 429 when the token or
 * session already has the maximum number of streams.
 */
export function joinStreams(services: Services, stream: Stream, lookMs: number): () => void {
  const streams: Streams = streamsOf.get(services) ?? { open: new Set(), rest: undefined }
  streamsOf.set(services, streams)
  const { open } = streams
  if ([...open].filter(({ reader }) => reader === stream.reader).length >= maxPerReader)
    throw new Problem('rate_limited', `A token can follow ${maxPerReader} streams at a time.`, {
      headers: { 'retry-after': '15' },
    })
  open.add(stream)
  streams.rest ??= watch(services, open, lookMs)
  return () => {
    open.delete(stream)
    if (open.size > 0) return
    streams.rest?.()
    streams.rest = undefined
  }
}

/** Ends all streams when the server closes. */
export function endStreams(services: Services): void {
  for (const stream of streamsOf.get(services)?.open ?? []) stream.end()
}

function watch({ events, store, log }: Services, open: ReadonlySet<Stream>, lookMs: number): () => void {
  let newest = 0
  const wake = (): void => {
    for (const stream of open) stream.wake()
  }
  const look = async (): Promise<void> => {
    try {
      const now = await newestEvent(store)
      if (now > newest) wake()
      newest = now
    } catch (cause) {
      log.warn({ err: cause }, 'The check of the event log for streams failed.')
    }
  }
  const off = events.on('*', ({ name }) => {
    if (!name.endsWith('.before')) wake()
  })
  const timer = setInterval(() => void look(), lookMs).unref()
  return () => {
    off()
    clearInterval(timer)
  }
}
