// The metrics that one server counts while it runs. Each app has separate counters, so that several
// apps in one process do not mix them. Metrics about rows and files are read from the database at
// each scrape (resources/system/metrics.ts).
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { MailDeferred, MailRefused } from '../../mail/failures.ts'
import type { Mailer } from '../../mail/mailer.ts'

export type DeliveryOutcome = 'succeeded' | 'failed' | 'given_up'

export interface MeasuredReply {
  /** The operationId, or `none`. */
  operation: string
  method: string
  status: number
  ms: number
}

export interface Metrics {
  /**
   * Counts a request that begins. Returns a function that the caller must call once, when the
   * request is over.
   */
  begun(): (answer: MeasuredReply) => void
  /** Counts a request that was refused because of overload. */
  shed(): void
  /** Counts a reply that did not match the contract. */
  breached(): void
  /** Counts an attempt to deliver an event to a webhook. */
  delivered(outcome: DeliveryOutcome): void
  /** Returns a mailer that passes mails to `mailer` and counts them. */
  counted(mailer: Mailer): Mailer
  /**
   * Adds metrics of the process and the number of open connections to the text, until `stop` is
   * called.
   */
  start(connections: () => Promise<number>): void
  stop(): void
  /**
   * Returns all metrics in the text format of Prometheus: those of this process, or of all
   * processes after `shareWith`.
   */
  text(): Promise<string>
  /**
   * Prepares the metrics for a server of several processes (processes/member.ts). Every series gets
   * the label `process`: a sum over all processes would fall when one of them restarts. From now on
   * `text` returns the result of `gather`, or the metrics of this process when `gather` returns
   * null.
   */
  shareWith(process: number, gather: () => Promise<string | null>): Registry[]
}

/**
 * The upper bounds of the histogram buckets, in seconds. There are few, because each combination of
 * operation and status has its own set of buckets.
 */
const bucketSeconds = [0.005, 0.025, 0.1, 0.5, 2, 15]
const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

let processRegistry: Registry | undefined

/**
 * Returns the registry with metrics of memory, CPU, event loop and garbage collection. prom-client
 * cannot stop collecting these metrics, so all apps of the process share one registry.
 */
function processMetrics(): Registry {
  if (processRegistry !== undefined) return processRegistry
  processRegistry = new Registry()
  collectDefaultMetrics({ prefix: 'accord_', register: processRegistry })
  return processRegistry
}

/** `others` are further registries whose metrics `text` includes. */
export function createMetrics(others: readonly Registry[] = []): Metrics {
  const registry = new Registry()
  const observe = createRequestHistogram([registry])
  const { shed, breached, limited, mails, deliveries } = createCounters([registry])
  let inWork = 0
  let connections: (() => Promise<number>) | undefined
  let gather: (() => Promise<string | null>) | undefined
  const registries = (): Registry[] =>
    connections === undefined ? [registry, ...others] : [registry, ...others, processMetrics()]
  new Gauge({
    name: 'accord_http_requests_in_work',
    help: 'Requests that have come and are not answered to their end, streams among them.',
    registers: [registry],
    collect() {
      this.set(inWork)
    },
  })
  new Gauge({
    name: 'accord_http_connections',
    help: 'Open connections.',
    registers: [registry],
    async collect() {
      this.set(connections === undefined ? 0 : await connections())
    },
  })
  return {
    begun() {
      inWork++
      return (answer) => {
        inWork--
        if (answer.status === 429) limited.inc()
        observe(answer)
      }
    },
    shed: () => shed.inc(),
    breached: () => breached.inc(),
    delivered: (outcome) => deliveries.inc({ outcome }),
    counted: (mailer) => countMails(mailer, (outcome) => mails.inc({ outcome })),
    start(ask) {
      connections = ask
      processMetrics()
    },
    stop() {
      connections = undefined
    },
    async text() {
      const all = await gather?.()
      return all ?? (await Promise.all(registries().map((each) => each.metrics()))).join('\n')
    },
    shareWith(process, gatherAll) {
      const shared = registries()
      for (const each of shared) each.setDefaultLabels({ process: String(process) })
      gather = gatherAll
      return shared
    },
  }
}

function createRequestHistogram(registers: Registry[]): (answer: MeasuredReply) => void {
  const requests = new Histogram({
    name: 'accord_http_request_duration_seconds',
    help: 'Requests by operation (`none` without one), method and status; 499 went away before an answer.',
    labelNames: ['operation', 'method', 'status'] as const,
    buckets: bucketSeconds,
    registers,
  })
  // Caches the histograms by their labels, because a lookup takes longer than an observation.
  const rows = new Map<string, Histogram.Internal<'operation' | 'method' | 'status'>>()
  return ({ operation, method: sent, status, ms }) => {
    const method = methods.has(sent) ? sent : 'other'
    const key = `${operation} ${method} ${status}`
    const row = rows.get(key) ?? requests.labels({ operation, method, status })
    rows.set(key, row)
    row.observe(ms / 1000)
  }
}

function createCounters(registers: Registry[]) {
  const counter = (name: string, help: string): Counter => new Counter({ name: `accord_${name}`, help, registers })
  const outcomes = (name: string, help: string, each: readonly string[]): Counter<'outcome'> => {
    const made = new Counter({ name: `accord_${name}`, help, labelNames: ['outcome'] as const, registers })
    for (const outcome of each) made.inc({ outcome }, 0)
    return made
  }
  return {
    shed: counter('http_requests_shed_total', 'Requests turned away with 503 because the server had too much to do.'),
    breached: counter(
      'http_replies_in_breach_total',
      'Replies that broke the contract, among those that were checked: all, or one in a thousand in production.',
    ),
    limited: counter('http_requests_rate_limited_total', 'Requests answered with 429.'),
    mails: outcomes(
      'mails_total',
      'Mails handed to the mail server by this process: sent, refused for good, or deferred to another try.',
      ['sent', 'refused', 'deferred'],
    ),
    deliveries: outcomes(
      'webhook_deliveries_total',
      'Attempts of this process to deliver to webhooks: succeeded, failed, or given up without one.',
      ['succeeded', 'failed', 'given_up'],
    ),
  }
}

const countMails = (mailer: Mailer, count: (outcome: 'sent' | 'refused' | 'deferred') => void): Mailer => ({
  isConfigured: mailer.isConfigured,
  check: () => mailer.check(),
  async send(message, signal) {
    try {
      const sent = await mailer.send(message, signal)
      count('sent')
      return sent
    } catch (cause) {
      count((cause as MailRefused | MailDeferred).name === 'MailRefused' ? 'refused' : 'deferred')
      throw cause
    }
  },
  close: () => mailer.close(),
})
