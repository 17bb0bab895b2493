// npm run test:soak [-- --minutes 30 --seed 1 --rate 40] runs a server with production settings
// under a mixed load. Exits with 1 when memory, files or connections grow, or when a reply is a
// server error.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { accordServing } from '../support/accord.ts'
import { type SoakLoad, soakLoad } from './soak.load.ts'

const { values: asked } = parseArgs({
  options: {
    minutes: { type: 'string', default: '30' },
    seed: { type: 'string', default: '1' },
    rate: { type: 'string', default: '40' },
  },
})
const minutes = Number(asked.minutes)
const [seed, rate] = [Number(asked.seed), Number(asked.rate)]
const sampleMs = 3000
const warmUpShare = 1 / 3
/**
 * The maximum growth of the heap in MiB per minute, which is a hundred bytes per request at the
 * default rate.
 */
const maxHeapPerMinute = 0.25
/**
 * The maximum share of refused requests. A busy machine delays the server, which then refuses some.
 */
const maxShed = 0.001
/**
 * The allowed increase of descriptors, because outgoing connections to webhook receivers close
 * later.
 */
const moreFds = 4

interface Sample {
  minute: number
  heap: number
  rss: number
  external: number
  fds: number
  connections: number
  delayMs: number
}

const mebi = 1024 * 1024
const password = 'a password for the soak'
const log = (line: string): void => void process.stdout.write(`${line}\n`)

async function figures(url: string): Promise<(name: string) => number> {
  const answer = await fetch(`${url}/metrics`, { headers: { connection: 'close' } })
  const text = await answer.text()
  if (answer.status !== 200) throw new Error(`/metrics answered ${answer.status}: ${text}`)
  const lines = new Map(text.split('\n').map((line) => [line.slice(0, line.lastIndexOf(' ')), line] as const))
  return (name) => Number(lines.get(`accord_${name}`)?.split(' ').at(-1) ?? Number.NaN)
}

async function sample(url: string, minute: number): Promise<Sample> {
  const of = await figures(url)
  return {
    minute,
    heap: of('nodejs_heap_size_used_bytes') / mebi,
    rss: of('process_resident_memory_bytes') / mebi,
    external: of('nodejs_external_memory_bytes') / mebi,
    fds: of('process_open_fds'),
    connections: of('http_connections'),
    delayMs: of('nodejs_eventloop_lag_p99_seconds') * 1000,
  }
}

/**
 * Sends requests at the rate, independently of the reply times, but with a maximum of concurrent
 * requests.
 */
async function drive(load: SoakLoad, ms: number, onSample: (minute: number) => Promise<void>): Promise<void> {
  const start = performance.now()
  let nextSample = 0
  for (let done = 0; ; done++) {
    const elapsed = performance.now() - start
    if (elapsed >= ms) return
    if (elapsed >= nextSample) {
      nextSample = elapsed + sampleMs
      await onSample(elapsed / 60_000)
    }
    if (load.busy() < 100) void load.one()
    const ahead = start + ((done + 1) * 1000) / rate - performance.now()
    if (ahead > 0) await pause(ahead)
    // Requests that are late are skipped.
    else if (ahead < -1000) done += Math.floor((-ahead / 1000) * rate)
  }
}

/** Waits until no request is running and all connections are closed, and returns a sample. */
async function settled(url: string, load: SoakLoad): Promise<Sample> {
  for (let tries = 0; load.busy() > 0 && tries < 200; tries++) await pause(100)
  await load.hangUp()
  let last = await sample(url, 0)
  for (let tries = 0; last.connections > 1 && tries < 30; tries++) {
    await pause(1000)
    last = await sample(url, 0)
  }
  // Waits for background work.
  await pause(3000)
  return sample(url, 0)
}

interface Line {
  slope: number
  /** The standard error of the slope. */
  error: number
}

function lineThrough(points: readonly (readonly [x: number, y: number])[]): Line {
  const n = points.length
  const mean = (index: 0 | 1): number => points.reduce((sum, point) => sum + point[index], 0) / n
  const [mx, my] = [mean(0), mean(1)]
  const sxx = points.reduce((sum, [x]) => sum + (x - mx) ** 2, 0)
  const slope = points.reduce((sum, [x, y]) => sum + (x - mx) * (y - my), 0) / sxx
  const rest = points.reduce((sum, [x, y]) => sum + (y - my - slope * (x - mx)) ** 2, 0)
  return { slope, error: n > 2 ? Math.sqrt(rest / (n - 2) / sxx) : Number.POSITIVE_INFINITY }
}

/**
 * Returns the minimum of each interval, because garbage is not collected at once. There are at
 * least eight intervals of at most a minute.
 */
function floor(samples: readonly Sample[], of: 'heap' | 'rss'): [number, number][] {
  const [from = 0, to = 0] = [samples[0]?.minute, samples.at(-1)?.minute]
  const stretch = Math.min(1, (to - from) / 8)
  const least = new Map<number, Sample>()
  for (const each of samples) {
    const index = Math.floor((each.minute - from) / stretch)
    const known = least.get(index)
    if (!known || each[of] < known[of]) least.set(index, each)
  }
  return [...least.values()].map((each) => [each.minute, each[of]])
}

const shown = (name: string, { slope, error }: Line): string =>
  `${name}: ${slope.toFixed(3)} ± ${error.toFixed(3)} MiB/min (${(slope * 60).toFixed(1)} MiB/h)`

function report(samples: readonly Sample[], before: Sample, after: Sample, load: SoakLoad): string[] {
  const steady = samples.slice(Math.floor(samples.length * warmUpShare))
  const heap = lineThrough(floor(steady, 'heap'))
  log(shown('heap, least of each stretch', heap))
  log(shown('heap, all samples         ', lineThrough(steady.map(({ minute, heap }) => [minute, heap]))))
  log(shown('resident memory, least    ', lineThrough(floor(steady, 'rss'))))
  log(shown('external memory           ', lineThrough(steady.map(({ minute, external }) => [minute, external]))))
  log(
    `event loop, p99 of each ${sampleMs / 1000} s: ${Math.max(...steady.map(({ delayMs }) => delayMs)).toFixed(0)} ms at most`,
  )
  log(
    `open files when nothing is under way: ${before.fds} before, ${after.fds} after; connections ${after.connections}`,
  )
  log(
    `answers: ${[...load.counts]
      .sort()
      .map(([what, times]) => `${what} × ${times}`)
      .join(', ')}`,
  )

  const all = [...load.counts.values()].reduce((sum, times) => sum + times, 0)
  const shed = load.counts.get('503') ?? 0
  const failed = [...load.counts].filter(([what]) => (/^5/.test(what) && what !== '503') || what.startsWith('failed'))
  const wrong: string[] = []
  if (failed.length > 0)
    wrong.push(`The server failed: ${failed.map(([what, times]) => `${what} × ${times}`).join(', ')}`)
  if (shed > all * maxShed) wrong.push(`It turned ${shed} of ${all} away as too many.`)
  if (after.fds > before.fds + moreFds) wrong.push(`Open files grew from ${before.fds} to ${after.fds}.`)
  if (after.connections > 1) wrong.push(`${after.connections - 1} unused connections are open.`)
  if (heap.slope - 2 * heap.error > maxHeapPerMinute)
    wrong.push(`The heap grows: surely more than ${maxHeapPerMinute} MiB a minute.`)
  return wrong
}

const folder = mkdtempSync(join(tmpdir(), 'accord-soak-'))
const mails = join(folder, 'mails')
mkdirSync(mails)
const server = await accordServing(folder, 'start', {
  ACCORD_ENV: 'production',
  ACCORD_ADMIN_PASSWORD: password,
  ACCORD_SMTP_URL: `file:${mails}`,
  ACCORD_WEBHOOK_ALLOW_HTTP: 'on',
  ACCORD_WEBHOOK_ALLOW_CIDRS: '127.0.0.1/32',
})
let wrong: string[] = []
try {
  const load = await soakLoad(server.url, password, seed)
  log(`${minutes} minutes at ${rate} requests a second, seed ${seed}; the first third is for warming up`)
  await drive(load, 15_000, async () => undefined)
  const before = await settled(server.url, load)
  const samples: Sample[] = []
  await drive(load, minutes * 60_000, async (minute) => {
    const each = await sample(server.url, minute)
    samples.push(each)
    if (samples.length % 20 === 1)
      log(
        `${minute.toFixed(1)} min: heap ${each.heap.toFixed(1)}, rss ${each.rss.toFixed(0)} MiB, ` +
          `files ${each.fds}, connections ${each.connections}, delay ${each.delayMs.toFixed(0)} ms`,
      )
  })
  const after = await settled(server.url, load)
  wrong = report(samples, before, after, load)
  await load.close()
  const errors = server.said.stdout.split('\n').filter((line) => /"level":(50|60)/.test(line))
  if (errors.length > 0) log(`errors in the log: ${errors.length}, the first: ${errors[0]}`)
} finally {
  const { code } = await server.stop()
  if (code !== 0) wrong.push(`It ended with ${code}.`)
  rmSync(folder, { recursive: true, force: true })
}
for (const each of wrong) log(`✗ ${each}`)
if (wrong.length === 0) log('✓ Memory, files and connections stay what they were; no answer was a failure.')
process.exitCode = wrong.length === 0 ? 0 : 1
