// Sends many writes as lines while their answers arrive, and continues after a lost connection.
import type { components, paths } from '../../src/contract/schema.gen.ts'
import type { AccordClient } from './client.ts'
import { AccordProblem, unwrap } from './problem.ts'
import { lineMediaType, pause } from './retry.ts'

export type BulkLine = components['schemas']['BulkLine']
export type BulkAnswer = components['schemas']['BulkAnswer']

/**
 * The lines, or a function that returns them from the beginning again. Only lists and functions can
 * be sent again after a lost connection.
 */
export type BulkLines = BulkSource | (() => BulkSource)
type BulkSource = Iterable<BulkLine> | AsyncIterable<BulkLine>

export interface BulkOptions {
  /** Whether the lines after a refused one are carried out; `continue` unless given. */
  onError?: 'continue' | 'stop'
  /** Whether to try up to 1,000 lines without storing anything. */
  dryRun?: boolean
  /**
   * The key by which the server knows lines that it has carried out; a random one unless given.
   * With a key of its own, a program continues even after its end.
   */
  idempotencyKey?: string
  /** How often the lines are sent again without progress; 5 unless given. */
  retries?: number
  signal?: AbortSignal
}

const waitMs = 500

/**
 * Yields the answer to each line once, in order, and sends no faster than the answers are taken. An
 * answer has `did`, or a `problem` when the line was not carried out. Throws AccordProblem when the
 * server refuses the whole request, and TypeError when the connection is lost for good.
 */
export async function* bulk<Paths extends object = paths>(
  client: AccordClient<Paths>,
  lines: BulkLines,
  options: BulkOptions = {},
): AsyncGenerator<BulkAnswer, void> {
  const { retries = 5, signal = new AbortController().signal, idempotencyKey = crypto.randomUUID() } = options
  const isRepeatable = (typeof lines === 'function' || Array.isArray(lines)) && options.dryRun !== true
  let answered = 0
  for (let tries = 0; ; tries++) {
    const before = answered
    let fault: unknown
    try {
      let place = 0
      for await (const answer of send(client as unknown as AccordClient, lines, {
        ...options,
        signal,
        idempotencyKey,
      })) {
        fault = isUndone(answer) && isRepeatable ? new TypeError(answer.problem?.message) : undefined
        if (fault !== undefined) break
        if (++place <= answered) continue
        answered = place
        yield answer
      }
      if (fault === undefined) return
    } catch (cause) {
      if (!isTemporary(cause)) throw cause
      fault = cause
    }
    if (answered > before) tries = 0
    if (!isRepeatable || tries >= retries) throw fault
    await pause(waitMs * (tries + 1), signal)
  }
}

/** Returns whether the server ended before the line, or another request has its key. */
const isUndone = ({ status, problem }: BulkAnswer): boolean =>
  status === 503 || problem?.code === 'idempotency_in_flight'

/** Returns whether the same lines may be accepted later. A TypeError means a lost connection. */
const isTemporary = (cause: unknown): boolean =>
  cause instanceof TypeError || (cause instanceof AccordProblem && [409, 429, 503].includes(cause.status))

async function* send(
  client: AccordClient,
  lines: BulkLines,
  { onError, dryRun, idempotencyKey, signal }: BulkOptions & { idempotencyKey: string; signal: AbortSignal },
): AsyncGenerator<BulkAnswer, void> {
  const call = client.POST('/api/admin/bulk', {
    params: {
      ...(onError && { query: { on_error: onError } }),
      header: { 'Idempotency-Key': idempotencyKey, ...(dryRun && { 'Accord-Dry-Run': 'true' as const }) },
    },
    headers: { 'content-type': lineMediaType },
    body: [],
    bodySerializer: () => bytesOf(typeof lines === 'function' ? lines() : lines),
    duplex: 'half',
    parseAs: 'stream',
    signal,
  })
  const body = (await unwrap(call)) as unknown as ReadableStream<Uint8Array>
  let rest = ''
  for await (const text of body.pipeThrough(
    new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>,
  ) as ReadableStream<string> & AsyncIterable<string>) {
    const whole = (rest + text).split('\n')
    rest = whole.pop() ?? ''
    for (const line of whole) yield JSON.parse(line) as BulkAnswer
  }
}

/** Returns a stream that takes a line only when the connection takes its bytes. */
function bytesOf(lines: BulkSource): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  const source = Symbol.asyncIterator in lines ? lines[Symbol.asyncIterator]() : lines[Symbol.iterator]()
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await source.next()
      if (done) controller.close()
      else controller.enqueue(encoder.encode(`${JSON.stringify(value)}\n`))
    },
    async cancel() {
      await source.return?.()
    },
  })
}
