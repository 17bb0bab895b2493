// Streams the change feed as server-sent events. A stream stores only its position
// and reads events from the log. A slow client therefore uses no memory, and a reconnecting client
// misses no event. streams.ts wakes the streams when events arrive.
import { setImmediate } from 'node:timers/promises'
import type { Expression, SqlBool } from 'kysely'
import type { Context } from '../../kernel/context.ts'
import { type Download, download } from '../../kernel/files/download.ts'
import { placed } from '../../kernel/resource/export.ts'
import { nextPart, rememberCaller, renewedCaller } from './shared-parts.ts'
import { joinStreams } from './streams.ts'

/**
 * The maximum number of events per batch. The stream reads a batch only after the client has
 * received the previous batch, so a small batch limits the memory of a stream.
 */
const atOnce = 25

/**
 * Milliseconds between heartbeats (`beatMs`), and between checks for events that other processes
 * wrote (`lookMs`).
 */
export interface StreamIntervals {
  beatMs: number
  lookMs: number
}

/** The number of heartbeats after which a stream ends whose client reads nothing: a minute. */
const maxMissed = 4

const defaultIntervals: StreamIntervals = { beatMs: 15_000, lookMs: 1_000 }

/**
 * Returns a download that streams the events after the id `after` until the connection ends. Throws
 * 429 or 503 when there are too many streams.
 */
export function followEvents(
  ctx: Context,
  filters: readonly Expression<SqlBool>[],
  after: number,
  { beatMs, lookMs }: StreamIntervals = defaultIntervals,
): Download {
  rememberCaller(ctx)
  const alarm = createAlarm(beatMs, () => release())
  const stream = { reader: ctx, wake: alarm.ring, end: alarm.end }
  const leave = joinStreams(ctx.services, stream, lookMs)
  const release = (): void => {
    leave()
    alarm.end()
  }
  return download({
    mediaType: 'text/event-stream',
    body: placed(streamEntries(ctx, filters, after, alarm, release), release),
    // The connection ends with its stream. A kept-alive connection would delay the shutdown of the
    // server.
    headers: { 'cache-control': 'no-store', 'x-accel-buffering': 'no', connection: 'close' },
  })
}

type Alarm = ReturnType<typeof createAlarm>

/**
 * Creates the alarm of one stream. The alarm wakes the stream when events arrive, when a heartbeat
 * is due, and when the stream must end. It calls `cutOff` when the client reads nothing during
 * `maxMissed` heartbeats.
 */
function createAlarm(beatMs: number, cutOff: () => void) {
  let hasNews = true
  let isDue = false
  let isOver = false
  let wake: () => void = () => undefined
  let isOffered = false
  let missed = 0
  const ring = (): void => {
    hasNews = true
    wake()
  }
  const beat = setInterval(() => {
    missed = isOffered ? missed + 1 : 0
    if (missed >= maxMissed) cutOff()
    isDue = true
    ring()
  }, beatMs).unref()
  return {
    ring,
    end: (): void => {
      clearInterval(beat)
      isOver = true
      wake()
    },
    isOver: () => isOver,
    /** Called before a message is offered to the client, and when the client has taken it. */
    offer: (): void => {
      isOffered = true
    },
    taken: (): void => {
      isOffered = false
      missed = 0
    },
    /** Returns whether a heartbeat is due, and resets the flag. */
    takeBeat: (): boolean => {
      const wasDue = isDue
      isDue = false
      return wasDue
    },
    /**
     * Waits for new events, a heartbeat or the end of the stream. Returns at once when one of the
     * three occurred since the previous call.
     */
    rest: async (): Promise<void> => {
      if (!hasNews && !isOver)
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      hasNews = false
    },
  }
}

async function* streamEntries(
  ctx: Context,
  filters: readonly Expression<SqlBool>[],
  after: number,
  alarm: Alarm,
  release: () => void,
): AsyncGenerator<string> {
  let place = after
  try {
    // The first message contains the position, so that a client can resume even before its first
    // event.
    yield `retry: 2000\nid: ${place}\n\n`
    for (await alarm.rest(); !alarm.isOver(); await alarm.rest()) {
      for (let hasMore = true; hasMore && !alarm.isOver(); ) {
        const caller = await renewedCaller(ctx)
        if (!caller) return
        const part = await nextPart(caller, filters, place, atOnce)
        place = part.next
        hasMore = part.hasMore
        if (part.text !== null) {
          alarm.offer()
          yield part.text
          alarm.taken()
        }
        // A long part of the log may have no visible events, so this loop must yield to other
        // requests.
        if (part.text === null && hasMore) await setImmediate()
      }
      // The heartbeat contains the position, because the position also advances past invisible
      // events.
      if (!alarm.isOver() && alarm.takeBeat()) {
        alarm.offer()
        yield `: still here\nid: ${place}\n\n`
        alarm.taken()
      }
    }
  } finally {
    release()
  }
}
