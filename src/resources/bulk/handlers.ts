// The bulk write: reads lines, carries out a batch of them in one transaction, and answers each.
// Reading waits for the work, and the work waits for the client to take the answers.

import { BodyCut } from '../../contract/input/lines.ts'
import type { Context } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import { download } from '../../kernel/files/download.ts'
import type { Handler, HandlerInput, Handlers } from '../../kernel/handler.ts'
import { inSteps, reserveOwn } from '../../kernel/write/idempotency.ts'
import { transaction } from '../../kernel/write/write.ts'
import { createLineReader } from './line-reader.ts'
import { enterBulkWrite } from './open-writes.ts'
import { problemOf, type Run, runBatch } from './run-batch.ts'
import { type Answer, refused } from './run-line.ts'
import { answersTo, type StoredBatch, storedBatch } from './stored-answers.ts'

const batchSize = 100
/** The number of lines of a dry run, which is one transaction. */
const maxTried = 1000

const bulkWrite: Handler<'bulkWrite'> = inSteps(async (ctx: Context, { query }: HandlerInput<'bulkWrite'>) => {
  if (!ctx.sent) throw new Error('A bulk write needs a body of lines.')
  const stopsOnRefusal = query.on_error === 'stop'
  const reader = createLineReader(ctx.sent.lines)
  const leave = enterBulkWrite(ctx, () => reader.stop())
  const key = await reserveOwn(ctx, { stopsOnRefusal }).catch((error: unknown) => {
    leave()
    throw error
  })
  const run: Run = { ctx, key, stopsOnRefusal, reader }
  const headers: Record<string, string> = { 'cache-control': 'no-store', 'x-accel-buffering': 'no' }
  if (key?.isKnown) headers['idempotency-replayed'] = 'true'
  if (ctx.dryRun) headers['accord-dry-run'] = 'true'
  const body = closing(run, leave, answers(run))
  return download({ mediaType: 'application/x-ndjson', disposition: 'inline', headers, body })
})

export const handlers = { bulkWrite } satisfies Partial<Handlers>

/** Releases what the run holds at its end, also when the client goes before the first answer. */
function closing({ reader, key }: Run, leave: () => void, texts: AsyncGenerator<string>): AsyncIterable<string> {
  const close = async (): Promise<void> => {
    leave()
    reader.close()
    await key?.release()
  }
  return {
    [Symbol.asyncIterator]: () => ({
      async next() {
        try {
          const found = await texts.next()
          if (found.done) await close()
          return found
        } catch (error) {
          await close()
          if (error instanceof BodyCut) return { done: true as const, value: undefined }
          throw error
        }
      },
      async return() {
        await close()
        return { done: true as const, value: undefined }
      },
    }),
  }
}

const textOf = (answers: readonly Answer[]): string => answers.map((each) => `${JSON.stringify(each)}\n`).join('')

/** Where a run stands: the number of answered lines, and the number of the last one. */
interface Place {
  position: number
  last: number
}

async function* answers(run: Run): AsyncGenerator<string> {
  const { ctx, key } = run
  const place: Place = { position: 0, last: 0 }
  for (let isOver = false; !isOver; ) {
    const stored = key?.isKnown ? await storedBatch(ctx, key, place.position) : undefined
    const part =
      stored?.position === place.position ? await replay(run, place, stored) : await proceed(run, place, stored)
    if (part === null) break
    yield part.text
    isOver = part.isLast
    if (isOver) return
  }
  if (key && !key.isCompleted) await transaction(ctx, (inner) => key.renew(inner, true))
}

interface Part {
  text: string
  isLast: boolean
}

const ending = ({ ctx }: Run, line: number, problem: Problem): Part => ({
  text: textOf([refused(ctx, line, problem)]),
  isLast: true,
})

const stopping = (run: Run, line: number): Part =>
  ending(run, line, new Problem('unavailable', 'The server is closing.'))

/** Returns the stored answers to the next lines. Returns null when the body ends before them. */
async function replay(run: Run, place: Place, stored: StoredBatch): Promise<Part | null> {
  const { ctx, reader, stopsOnRefusal } = run
  const lines = await reader.exactly(stored.lines)
  const first = lines[0]?.number ?? place.last + 1
  if (reader.isStopped()) return stopping(run, first)
  if (lines.length === 0) return null
  try {
    const text = answersTo(ctx, stored, lines)
    move(place, lines)
    return { text, isLast: stopsOnRefusal && isRefusal(text) }
  } catch (error) {
    return ending(run, first, problemOf(ctx, error))
  }
}

function move(place: Place, lines: readonly { number: number }[]): void {
  place.position += lines.length
  place.last = lines.at(-1)?.number ?? place.last
}

function isRefusal(text: string): boolean {
  const [answer = '{}'] = text.trimEnd().split('\n').slice(-1)
  return (JSON.parse(answer) as Answer).problem !== undefined
}

/** Carries out the next lines. Returns null at the end of the body. */
async function proceed(run: Run, place: Place, stored: StoredBatch | undefined): Promise<Part | null> {
  const { ctx, reader, key } = run
  const most = Math.min(batchSize, (stored?.position ?? Number.POSITIVE_INFINITY) - place.position)
  const lines = ctx.dryRun ? await reader.exactly(maxTried) : await reader.available(most)
  const first = lines[0]?.number ?? place.last + 1
  if (reader.isStopped()) return stopping(run, first)
  if (lines.length === 0) return null
  if (key?.isCompleted) return ending(run, first, new Problem('idempotency_key_reused'))
  if (ctx.dryRun && place.position > 0)
    return ending(run, first, new Problem('payload_too_large', `A dry run tries at most ${maxTried} lines of 1 MiB.`))
  const { answers, isLast } = await runBatch(run, place.position, lines)
  move(place, lines)
  return { text: textOf(answers), isLast }
}
