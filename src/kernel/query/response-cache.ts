// Replies that are kept in memory. What a record or a page of a list is answered with stays the answer for whoever asked until
// anything is committed (`Store.generation`), or until time changes it. Only handlers that say so are kept: their replies follow from
// the database, the caller, the address and the time, and they change nothing.
import type { Context } from '../context.ts'

/** The time a reply tells of, and how long it stays so; what asks the context for the time at all says that it does not. */
export interface Freshness {
  readonly at: Date
  /** In milliseconds since 1970. */
  until: number
}

/** A context that has still to be told the time. */
export type Untimed = Omit<Context, 'time' | 'lasting' | 'knownAt'>

interface Reply {
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

export interface Replies {
  /** What `answer` answers, or has answered: the same for the same key. */
  kept<R extends Reply>(ctx: Context, key: string, answer: (ctx: Context) => Promise<R>): Promise<R>
}

const kept = new WeakSet<object>()

/** The handler, marked as one whose replies are kept. */
export function cacheable<H extends object>(handler: H): H {
  kept.add(handler)
  return handler
}

export const isKeepable = (handler: object): boolean => kept.has(handler)

/**
 * The context with its time. With `knownAt`, the generation of the store before it was looked who calls, its reply may be kept: then
 * the context notes when it is asked for the time.
 */
export function timed(ctx: Untimed, time: Date, knownAt: number | undefined): Context {
  if (knownAt === undefined) return Object.assign(ctx, { time })
  Object.assign(ctx, { knownAt, lasting: { at: time, until: Number.POSITIVE_INFINITY } })
  return Object.defineProperty(ctx, 'time', watched) as Context
}

/** It is a call's own; what is copied from it has asked. Put in the place of another property, it would make engines slow with them. */
const watched = {
  enumerable: true,
  configurable: true,
  get(this: { lasting: Freshness }): Date {
    this.lasting.until = 0
    return this.lasting.at
  },
}

/** A value that changes by itself, with the moment up to which it is the same. */
export function validUntil<T>(ctx: Context, of: (at: number) => { value: T; until: number }): T {
  if (ctx.lasting === undefined) return of(ctx.time.getTime()).value
  const { value, until } = of(ctx.lasting.at.getTime())
  ctx.lasting.until = Math.min(ctx.lasting.until, until)
  return value
}

interface Entry {
  readonly reply: Reply
  readonly size: number
  readonly since: number
  readonly until: number
}

/** One reply may take so much of it: many small ones are worth more. */
const largestShare = 1 / 64

/** `most`: bytes. */
export function createResponseCache(most: number): Replies {
  let generation = 0
  // Those asked for lately, and those before that; each takes half.
  let recent = new Map<string, Entry>()
  let older = new Map<string, Entry>()
  let bytes = 0

  function keep(key: string, entry: Entry): void {
    if (bytes + entry.size > most / 2) {
      older = recent
      recent = new Map()
      bytes = 0
    }
    recent.set(key, entry)
    bytes += entry.size
  }

  function find(key: string, at: number): Entry | undefined {
    const entry = recent.get(key) ?? older.get(key)
    if (entry === undefined || at < entry.since || at >= entry.until) return undefined
    if (!recent.has(key)) keep(key, entry)
    return entry
  }

  return {
    async kept<R extends Reply>(ctx: Context, key: string, answer: (ctx: Context) => Promise<R>): Promise<R> {
      const { services, lasting, knownAt } = ctx
      const { store, config } = services
      const now = store.commitGeneration()
      // Who calls was read before something was committed: what they may see may be another thing by now.
      if (lasting === undefined || knownAt !== now) return answer(ctx)
      if (now !== generation) {
        recent = new Map()
        older = new Map()
        bytes = 0
        generation = now
      }
      const since = lasting.at.getTime()
      const found = find(key, since)?.reply as R | undefined
      if (found !== undefined) {
        if (config.env !== 'test') return found
        const anew = await answer(ctx)
        // Something may have been committed while it was made.
        if (!isSame(found, anew) && store.commitGeneration() === now) throw wrong(key, found)
        return found
      }
      if (config.env === 'test' && Object.getOwnPropertyDescriptor(ctx, 'time')?.get !== watched.get)
        throw new Error('Of a copied context nobody knows whether it was asked for the time.')
      lasting.until = Number.POSITIVE_INFINITY
      const reply = await answer(ctx)
      const size = sizeOf(key, reply)
      // What was read meanwhile may be newer than what was known before it.
      if (now === generation && lasting.until > since && size <= most * largestShare)
        keep(key, { reply, size, since, until: lasting.until })
      return reply
    },
  }
}

/** The entry itself, and the names of headers. */
const besideBytes = 500

/** What is no text is too large. Letters take one byte each, or two when one of them is no Latin one. */
function sizeOf(key: string, { body, headers }: Reply): number {
  if (typeof body !== 'string') return Number.POSITIVE_INFINITY
  const isPlain = Buffer.byteLength(body) === body.length
  const headed = Object.values(headers ?? {}).reduce((sum, { length }) => sum + length, 0)
  return key.length + headed + body.length * (isPlain ? 1 : 2) + besideBytes
}

/** In tests it is looked whether what is kept still is what would be answered. */
const isSame = (found: Reply, now: Reply): boolean => JSON.stringify(found) === JSON.stringify(now)

const wrong = (key: string, found: Reply): Error =>
  new Error(`The reply that was kept is another one by now: ${key} ${JSON.stringify(found)}`)
