// One of the processes that a supervisor has started: it follows the supervisor's requests, and
// answers a scrape of /metrics for all of them.
import cluster from 'node:cluster'
import { AggregatorRegistry } from 'prom-client'
import type { App } from '../app.ts'
import type { FromSupervisor, ToSupervisor } from './messages.ts'

/** Whether a supervisor has started this process. */
export const isMember = (): boolean => cluster.isWorker

/** Connects a serving process to its supervisor. `stop` closes the server and ends the process. */
export function joinSupervisor({ services: { metrics } }: App, number: number, stop: () => void): void {
  const waiting = new Map<number, (text: string | null) => void>()
  let asked = 0
  const registries = metrics.shareWith(
    number,
    () =>
      new Promise((resolve) => {
        waiting.set(++asked, resolve)
        tell({ type: 'accord:metrics', id: asked })
      }),
  )
  // By default, prom-client adds up the processes. They have labels of their own, so a sum is the
  // figure itself, and no figure is left out.
  for (const each of registries.flatMap((registry) => registry.getMetricsAsArray()))
    Object.assign(each, { aggregator: 'sum' })
  AggregatorRegistry.setRegistries(registries)
  // Answers the supervisor's registry.
  new AggregatorRegistry()
  process.on('message', (message: FromSupervisor) => {
    if (message.type === 'accord:stop') stop()
    if (message.type !== 'accord:metrics-text') return
    waiting.get(message.id)?.(message.text)
    waiting.delete(message.id)
  })
  tell({ type: 'accord:serving' })
}

/** A message that cannot be sent needs no answer: without a supervisor the process ends. */
function tell(message: ToSupervisor): void {
  process.send?.(message, undefined, undefined, () => undefined)
}
