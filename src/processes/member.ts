// The part of a serving process that talks to its supervisor. It stops the server at the
// supervisor's request, and gets the metrics of all processes for `/metrics`.
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
  // By default, prom-client omits or averages some metrics when it merges processes. Each process
  // has a label of its own, so a sum keeps every value unchanged.
  for (const each of registries.flatMap((registry) => registry.getMetricsAsArray()))
    Object.assign(each, { aggregator: 'sum' })
  AggregatorRegistry.setRegistries(registries)
  // The constructor adds the listener that answers the supervisor's registry.
  new AggregatorRegistry()
  process.on('message', (message: FromSupervisor) => {
    if (message.type === 'accord:stop') stop()
    if (message.type !== 'accord:metrics-text') return
    waiting.get(message.id)?.(message.text)
    waiting.delete(message.id)
  })
  tell({ type: 'accord:serving' })
}

/** Sends a message. Ignores errors, because a process without a supervisor ends anyway. */
function tell(message: ToSupervisor): void {
  process.send?.(message, undefined, undefined, () => undefined)
}
