// What the process tells of itself while it serves: memory, time, delay of the event loop, handles. The collectors that come with
// prom-client never end what they begin to watch, so they are not used.
import { readdir } from 'node:fs/promises'
import {
  constants,
  monitorEventLoopDelay,
  type PerformanceEntry,
  PerformanceObserver,
  performance,
} from 'node:perf_hooks'
import { getHeapStatistics as heap } from 'node:v8'
import { Counter, Gauge, type Registry } from 'prom-client'

/** Of the clock that measures the delay. It is in each measured value, and taken off again. */
const resolutionMs = 20
const quantiles = [0.5, 0.9, 0.99, 1]

/** Registers what is asked at each scrape; the function ends what is watched in between. */
export function watchProcess(registry: Registry, connections: () => Promise<number>): () => void {
  const gauge = (name: string, help: string, collect: (set: (value: number) => void) => void | Promise<void>): void => {
    const made: Gauge = new Gauge({
      name: `accord_${name}`,
      help,
      registers: [registry],
      collect: () => collect((value) => made.set(value)),
    })
  }
  const counter = (name: string, help: string, now: () => number): void => {
    const made: Counter = new Counter({
      name: `accord_${name}`,
      help,
      registers: [registry],
      collect: () => {
        made.reset()
        made.inc(now())
      },
    })
  }
  gauge('process_resident_memory_bytes', 'Memory of the process.', setResident)
  gauge('process_heap_used_bytes', 'Heap in use, garbage included.', (set) => set(heap().used_heap_size))
  gauge('process_heap_size_bytes', 'Heap taken from the system.', (set) => set(heap().total_heap_size))
  gauge('process_external_memory_bytes', 'Memory of buffers and of native parts.', (set) => set(heap().external_memory))
  gauge('process_start_time_seconds', 'When the process began, as Unix time.', (set) =>
    set(Math.round(performance.timeOrigin / 1000)),
  )
  gauge('process_open_fds', 'Open files and sockets, where the system tells.', async (set) => {
    const open = await readdir('/proc/self/fd').catch(() => undefined)
    // One of them is the look itself.
    if (open) set(open.length - 1)
  })
  gauge('http_connections', 'Open connections.', async (set) => set(await connections()))
  counter('process_cpu_seconds_total', 'Time of processors that was used.', () => {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1e6
  })
  counter('event_loop_active_seconds_total', 'How long the event loop was busy.', () => {
    return performance.eventLoopUtilization().active / 1000
  })

  const resources = new Gauge({
    name: 'accord_process_active_resources',
    help: 'What keeps the process alive, by type: timers, sockets, requests to the system.',
    labelNames: ['type'] as const,
    registers: [registry],
    collect() {
      this.reset()
      for (const type of process.getActiveResourcesInfo()) this.inc({ type })
    },
  })
  resources.reset()
  const delay = monitorEventLoopDelay({ resolution: resolutionMs })
  delay.enable()
  new Gauge({
    name: 'accord_event_loop_delay_seconds',
    help: 'How late the event loop was, since the last scrape.',
    labelNames: ['quantile'] as const,
    registers: [registry],
    collect() {
      for (const quantile of quantiles) {
        const nanoseconds = quantile === 1 ? delay.max : delay.percentile(quantile * 100)
        // Nothing was measured yet.
        const isKnown = delay.count > 0 && Number.isFinite(nanoseconds)
        this.set({ quantile }, isKnown ? Math.max(0, nanoseconds / 1e9 - resolutionMs / 1000) : 0)
      }
      delay.reset()
    },
  })
  const collected = watchCollections(registry)
  return () => {
    delay.disable()
    collected.disconnect()
  }
}

/** The system has a file to read for it, which cannot be opened where there is no descriptor left; then the last value stays. */
function setResident(set: (value: number) => void): void {
  try {
    set(process.memoryUsage.rss())
  } catch {
    // `process_open_fds` shows why.
  }
}

/** Heap in use right behind a full collection is what is really held: what grows there is a leak. */
function watchCollections(registry: Registry): PerformanceObserver {
  const registers = [registry]
  const pauses = new Counter({
    name: 'accord_gc_seconds_total',
    help: 'Time of garbage collections.',
    labelNames: ['kind'] as const,
    registers,
  })
  const held = new Gauge({
    name: 'accord_process_heap_held_bytes',
    help: 'Heap in use behind the last full collection; 0 before the first.',
    registers,
  })
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const { duration, detail } = entry as PerformanceEntry & { detail?: { kind?: number } }
      const isFull = detail?.kind === constants.NODE_PERFORMANCE_GC_MAJOR
      pauses.inc({ kind: isFull ? 'full' : 'partial' }, duration / 1000)
      if (isFull) held.set(heap().used_heap_size)
    }
  })
  observer.observe({ entryTypes: ['gc'] })
  return observer
}
