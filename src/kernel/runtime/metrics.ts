// What a server counts of itself: one object for each app, so that several in one process know nothing of each other. Slices count
// here; what rows and files tell is asked when somebody wants to know it (resources/system/metrics.ts).
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { MailDeferred, Mailer, MailRefused } from '../../mail/outbound.ts'
import { watchProcess } from './process-metrics.ts'

export type DeliveryOutcome = 'succeeded' | 'failed' | 'given_up'

export interface Answer {
  /** The operationId, or `none`. */
  operation: string
  method: string
  status: number
  ms: number
}

export interface Metrics {
  /** A request came; the function is called when it is over, once. */
  begun(): (answer: Answer) => void
  /** A request was turned away because the server had too much to do. */
  shed(): void
  /** A reply that was checked broke the contract. */
  breached(): void
  /** What became of one try to deliver to a webhook. */
  delivered(outcome: DeliveryOutcome): void
  /** The same mailer, counted. */
  counted(mailer: Mailer): Mailer
  /** Watches the process too, and the connections, until `stop`. */
  start(connections: () => Promise<number>): void
  stop(): void
  /** What was counted, in the text format of Prometheus. */
  text(): Promise<string>
}

/** Few, because there is one row for each of them, each operation and each status. */
const seconds = [0.005, 0.025, 0.1, 0.5, 2, 15]
const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

export function createMetrics(): Metrics {
  const registry = new Registry()
  const registers = [registry]
  const requests = new Histogram({
    name: 'accord_http_request_duration_seconds',
    help: 'Requests by operation (`none` for what is no operation), method and status; 499 went away before an answer.',
    labelNames: ['operation', 'method', 'status'] as const,
    buckets: seconds,
    registers,
  })
  let inWork = 0
  new Gauge({
    name: 'accord_http_requests_in_work',
    help: 'Requests that have come and are not answered to their end, streams among them.',
    registers,
    collect() {
      this.set(inWork)
    },
  })
  const shed = new Counter({
    name: 'accord_http_requests_shed_total',
    help: 'Requests turned away with 503 because the server had too much to do.',
    registers,
  })
  const breached = new Counter({
    name: 'accord_http_replies_in_breach_total',
    help: 'Replies that broke the contract, among those that were checked: all, or one in a thousand in production.',
    registers,
  })
  const limited = new Counter({
    name: 'accord_http_requests_rate_limited_total',
    help: 'Requests answered with 429.',
    registers,
  })
  const mails = new Counter({
    name: 'accord_mails_total',
    help: 'Mails handed to the mail server by this process: sent, refused for good, or deferred to another try.',
    labelNames: ['outcome'] as const,
    registers,
  })
  const deliveries = new Counter({
    name: 'accord_webhook_deliveries_total',
    help: 'Tries of this process to deliver to webhooks: succeeded, failed, or given up without a try.',
    labelNames: ['outcome'] as const,
    registers,
  })
  for (const outcome of ['sent', 'refused', 'deferred']) mails.inc({ outcome }, 0)
  for (const outcome of ['succeeded', 'failed', 'given_up']) deliveries.inc({ outcome }, 0)

  const rows = new Map<string, Histogram.Internal<'operation' | 'method' | 'status'>>()
  /** Found by its labels once: finding it takes longer than counting. */
  function rowOf({ operation, method: sent, status }: Answer): { observe(seconds: number): void } {
    const method = methods.has(sent) ? sent : 'other'
    const key = `${operation} ${method} ${status}`
    const known = rows.get(key)
    if (known) return known
    const row = requests.labels({ operation, method, status })
    rows.set(key, row)
    return row
  }

  let watched: { registry: Registry; end: () => void } | undefined
  return {
    begun() {
      inWork++
      return (answer) => {
        inWork--
        if (answer.status === 429) limited.inc()
        rowOf(answer).observe(answer.ms / 1000)
      }
    },
    shed: () => shed.inc(),
    breached: () => breached.inc(),
    delivered: (outcome) => deliveries.inc({ outcome }),
    counted: (mailer) => ({
      isConfigured: mailer.isConfigured,
      check: () => mailer.check(),
      async send(message, signal) {
        try {
          const sent = await mailer.send(message, signal)
          mails.inc({ outcome: 'sent' })
          return sent
        } catch (cause) {
          mails.inc({ outcome: (cause as MailRefused | MailDeferred).name === 'MailRefused' ? 'refused' : 'deferred' })
          throw cause
        }
      },
      close: () => mailer.close(),
    }),
    start(connections) {
      if (watched) return
      const registry = new Registry()
      watched = { registry, end: watchProcess(registry, connections) }
    },
    stop() {
      watched?.end()
      watched = undefined
    },
    async text() {
      const counted = await registry.metrics()
      return watched ? `${counted}\n${await watched.registry.metrics()}` : counted
    },
  }
}
