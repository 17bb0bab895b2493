// Measures kinds of requests on both servers: a warm-up, then rounds in which both servers take
// turns, so that other load on the machine affects both. A round ends after a number of seconds or
// requests.
import type { Client } from './client.ts'
import { type Cost, median, type Row } from './report.ts'
import type { Kind, World } from './requests.ts'
import { cpuMs, type Name, type Server } from './servers.ts'

export interface Plan {
  world: World
  token: string
  rounds: number
  /** The limits of a round of one server. */
  seconds: number
  requests: number
  /** Called after the warm-up of both servers. */
  warm?(): Promise<void> | undefined
}

/**
 * With eight connections, a server never waits for the client, because requests are always queued.
 */
const connections = 8

export async function measure(
  client: Client,
  servers: readonly [Server, Server],
  kind: Kind,
  { world, token, rounds, seconds, requests, warm }: Plan,
): Promise<Row> {
  const found: Record<Name, Cost[]> = { accord: [], limit: [] }
  let refused = 0
  // Round 0 is the warm-up, which prepares statements, caches pages and lets V8 compile hot code.
  // This takes some thousand requests.
  for (let round = 0; round <= rounds; round++) {
    for (const { name, pid, url } of servers) {
      const before = cpuMs(pid)
      const bounds = round === 0 ? warmUp(seconds) : { seconds, requests }
      const task = { url, token, world, kinds: [kind], connections, seed: 1000 + round, ...bounds }
      const figures = await client.run(task)
      const used = cpuMs(pid) - before
      const { p50, p99 } = figures
      const cost = { cpuMs: used / figures.requests, perSecond: figures.requests / figures.seconds, p50, p99 }
      if (round > 0) found[name].push(cost)
      if (round > 0) refused += figures.refused
    }
    if (round === 0) await warm?.()
  }
  const costs = { accord: middle(found.accord), limit: middle(found.limit) }
  return { leads: world.leads, kind, rounds, refused, costs, ratio: costs.accord.cpuMs / costs.limit.cpuMs }
}

/** Returns the limits of the warm-up. A slower server needs more time to compile its hot code. */
const warmUp = (seconds: number) => ({ seconds: 10 * seconds, requests: 10_000 })

const middle = (costs: readonly Cost[]): Cost => ({
  cpuMs: median(costs.map(({ cpuMs }) => cpuMs)),
  perSecond: median(costs.map(({ perSecond }) => perSecond)),
  p50: median(costs.map(({ p50 }) => p50)),
  p99: median(costs.map(({ p99 }) => p99)),
})
