// The feed as server-sent events (DOMAIN 17.4): one log is read behind a place again and again, so a reader that comes back misses
// nothing, and nothing waits in memory for a slow one. Who follows, and what wakes them, is in streams.ts.
import { setImmediate } from 'node:timers/promises'
import type { Expression, SqlBool } from 'kysely'
import type { Schema } from '../../contract/types.ts'
import { renewed } from '../../kernel/auth/sessions.ts'
import type { Context } from '../../kernel/context.ts'
import { type Download, download } from '../../kernel/files/download.ts'
import { placed } from '../../kernel/resource/export.ts'
import { readPart } from './entries.ts'
import { join } from './streams.ts'

/** Few at a time: the next are read when these are taken. */
const atOnce = 25

/** How often a reader is told that the stream lives, and how often other processes are thought of. */
export interface Pace {
  beatMs: number
  lookMs: number
}

const usual: Pace = { beatMs: 15_000, lookMs: 1_000 }

/** What happens behind `after`, as a reply that does not end by itself. Throws 429 beyond the limit of a token. */
export function follow(
  ctx: Context,
  filters: readonly Expression<SqlBool>[],
  after: number,
  { beatMs, lookMs }: Pace = usual,
): Download {
  const alarm = createAlarm(beatMs)
  const leave = join(ctx.services, { reader: readerOf(ctx), wake: alarm.ring, end: alarm.end }, lookMs)
  const release = (): void => {
    leave()
    alarm.end()
  }
  return download({
    mediaType: 'text/event-stream',
    body: placed(told(ctx, filters, after, alarm, release), release),
    // The connection goes with the stream, so that a server that closes need not wait for it to be idle.
    headers: { 'cache-control': 'no-store', 'x-accel-buffering': 'no', connection: 'close' },
  })
}

const readerOf = ({ token, session }: Context): string => (token ? `token ${token.id}` : `session ${session?.id}`)

type Alarm = ReturnType<typeof createAlarm>

/** What a stream waits for: something happened, a sign of life is due, or it is over. */
function createAlarm(beatMs: number) {
  let hasNews = true
  let isDue = false
  let isOver = false
  let wake: () => void = () => undefined
  const ring = (): void => {
    hasNews = true
    wake()
  }
  const beat = setInterval(() => {
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
    /** Whether a sign of life is due; it is given once. */
    takeBeat: (): boolean => {
      const wasDue = isDue
      isDue = false
      return wasDue
    },
    /** Returns once there is something to do, at once when there was since the last time. */
    rest: async (): Promise<void> => {
      if (!hasNews && !isOver)
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      hasNews = false
    },
  }
}

async function* told(
  ctx: Context,
  filters: readonly Expression<SqlBool>[],
  after: number,
  alarm: Alarm,
  release: () => void,
): AsyncGenerator<string> {
  let place = after
  try {
    // Where the reader stands, so that it comes back to the right place although nothing has happened yet.
    yield `retry: 2000\nid: ${place}\n\n`
    for (await alarm.rest(); !alarm.isOver(); await alarm.rest()) {
      for (let hasMore = true; hasMore && !alarm.isOver(); ) {
        const caller = await renewed(ctx, 'listEvents')
        if (!caller) return
        const part = await readPart(caller, filters, place, atOnce)
        place = part.next
        hasMore = part.hasMore
        if (part.entries.length > 0) yield part.entries.map(block).join('')
        // A long log in which nothing is found keeps nobody waiting.
        else if (hasMore) await setImmediate()
      }
      // With the place, which moves on while there is nothing the reader may see.
      if (alarm.takeBeat()) yield `: still here\nid: ${place}\n\n`
    }
  } finally {
    release()
  }
}

const block = (entry: Schema<'EventEntry'>): string =>
  `id: ${entry.id}\nevent: ${entry.name}\ndata: ${JSON.stringify(entry)}\n\n`
