// Who follows the feed of one server: how many streams a token or session has, what wakes them, and their end. A commit of this process wakes
// them at once; those of other processes are looked for every second.
import type { Services } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import { newestEvent } from '../../kernel/write/event-log.ts'

const maxPerReader = 5

export interface Stream {
  /** The token or session that reads it. */
  reader: string
  wake(): void
  end(): void
}

interface Streams {
  open: Set<Stream>
  /** Stops looking; undefined while nobody follows. */
  rest: (() => void) | undefined
}

const known = new WeakMap<Services, Streams>()

/** Throws 429 when the reader has as many streams as it can have. Answers how to leave. */
export function join(services: Services, stream: Stream, lookMs: number): () => void {
  const streams: Streams = known.get(services) ?? { open: new Set(), rest: undefined }
  known.set(services, streams)
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

/** Ends every stream of a server that is closing. */
export function endStreams(services: Services): void {
  for (const stream of known.get(services)?.open ?? []) stream.end()
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
      log.warn({ err: cause }, 'The event log could not be looked at for its streams.')
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
