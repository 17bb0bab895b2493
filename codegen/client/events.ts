// Follows the event feed as server-sent events, and reconnects after the last received event.
import { EventSourceParserStream } from 'eventsource-parser/stream'
import type { components, operations, paths } from '../../src/contract/schema.gen.ts'
import type { AccordClient } from './client.ts'
import { unwrap } from './problem.ts'
import { pause } from './retry.ts'

type Entry = components['schemas']['EventEntry']
type Filters = Omit<NonNullable<operations['listEvents']['parameters']['query']>, 'after' | 'per_page'>

export interface SubscribeOptions {
  /** Id of the last event that the caller has handled; by default, only new events are sent. */
  after?: number
  /** Filters of `listEvents`, such as `{ name: ['lead.*.after'] }`. */
  filters?: Filters
  /** Ends the stream. */
  signal?: AbortSignal
  /** Milliseconds before a reconnect; 1,000 unless given. */
  reconnectMs?: number
}

/**
 * Yields each event once, in order, until `signal` aborts. Store the `id` of the last handled event
 * and pass it as `after` the next time. Throws AccordProblem when the server refuses the stream.
 */
export async function* subscribeToEvents<Paths extends object = paths>(
  client: AccordClient<Paths>,
  { after, filters, signal = new AbortController().signal, reconnectMs = 1_000 }: SubscribeOptions = {},
): AsyncGenerator<Entry, void> {
  let last = after
  while (!signal.aborted) {
    try {
      const query = { ...filters, ...(last !== undefined && { after: last }) }
      for await (const entry of readStream(client as unknown as AccordClient, query, signal)) {
        // The entries that arrived with an earlier one are still in the buffer.
        if (signal.aborted) return
        last = entry.id
        yield entry
      }
    } catch (cause) {
      // A TypeError means a lost connection. The next request continues after `last`.
      if (!(cause instanceof TypeError) && !signal.aborted) throw cause
    }
    // An abort ends the pause, and then the loop.
    await pause(reconnectMs, signal).catch(() => undefined)
  }
}

async function* readStream(
  client: AccordClient,
  query: Filters & { after?: number },
  signal: AbortSignal,
): AsyncGenerator<Entry, void> {
  const call = client.GET('/api/admin/events', {
    params: { query },
    headers: { accept: 'text/event-stream' },
    parseAs: 'stream',
    signal,
  })
  const body = await unwrap(call)
  const messages = (body as ReadableStream<Uint8Array>)
    .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
    .pipeThrough(new EventSourceParserStream())
  for await (const { data } of messages) if (data !== '') yield JSON.parse(data)
}
