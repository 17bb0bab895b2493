// Tracks the open event streams of this server: limits their number, wakes them and ends them. A
// commit of this process wakes the streams at once. A check every second detects commits of other
// processes.

import { setImmediate } from 'node:timers/promises'
import type { Services } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import { countOpenCall, type OpenCalls, type Opener, retryLater } from '../../kernel/runtime/open-calls.ts'
import { perOwner } from '../../kernel/runtime/per-owner.ts'
import { newestEvent } from '../../kernel/write/event-log.ts'

const limits = { perToken: 5, perUser: 50, verb: 'follow', nouns: 'streams' }
/** The maximum number of streams of this process. Each stream has a connection of its own. */
const maxInAll = 8_000
/** The number of streams to wake before other requests run. */
const perTurn = 25

export interface Stream {
  reader: Opener
  wake(): void
  end(): void
}

interface Streams {
  open: Set<Stream>
  counts: OpenCalls
  /** The number of times that the streams were woken. */
  passes: number
  /** Stops waking the streams. Undefined while no stream is open. */
  rest: (() => void) | undefined
}

const streamsOf = perOwner(
  (_services: Services): Streams => ({ open: new Set(), counts: new Map(), passes: 0, rest: undefined }),
)

/** Returns a number that changes whenever the streams are woken. */
export const passOf = (services: Services): number => streamsOf(services).passes

/**
 * Adds a stream. Returns a function that removes the stream again. Throws 429 when the token, the
 * session or the user already has the maximum number of streams, and 503 when the process has.
 */
export function joinStreams(services: Services, stream: Stream, pollMs: number): () => void {
  const streams = streamsOf(services)
  const { open, counts } = streams
  if (open.size >= maxInAll)
    throw new Problem('unavailable', 'The server has too many open event streams.', { headers: retryLater })
  const release = countOpenCall(counts, stream.reader, limits)
  open.add(stream)
  // While no stream was open, no event was counted as a pass.
  streams.passes++
  streams.rest ??= watch(services, streams, pollMs)
  return () => {
    if (!open.delete(stream)) return
    release()
    if (open.size > 0) return
    streams.rest?.()
    streams.rest = undefined
  }
}

/** Ends all streams when the server closes. */
export function endStreams(services: Services): void {
  for (const stream of streamsOf(services).open) stream.end()
}

function watch({ events, store, log }: Services, streams: Streams, pollMs: number): () => void {
  let newest = 0
  const wake = createWaker(streams)
  const poll = async (): Promise<void> => {
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
  const timer = setInterval(() => void poll(), pollMs).unref()
  return () => {
    off()
    clearInterval(timer)
  }
}

/**
 * Returns a function that wakes all streams, a few in each turn of the event loop. A call during
 * this work makes it begin again.
 */
function createWaker(streams: Streams): () => void {
  let isWaking = false
  const wakeAll = async (): Promise<void> => {
    for (let pass = -1; pass !== streams.passes; ) {
      pass = streams.passes
      let woken = 0
      for (const stream of [...streams.open]) {
        stream.wake()
        if (++woken % perTurn === 0) await setImmediate()
      }
    }
  }
  return () => {
    streams.passes++
    if (isWaking) return
    isWaking = true
    void wakeAll().finally(() => {
      isWaking = false
    })
  }
}
