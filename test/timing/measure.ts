// Measures a server from a separate process. Sends a fixed number of concurrent requests, or a
// fixed number per second. The argument is the task, and the output the measurements.
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { fineStopwatch } from '../../src/kernel/runtime/clock.ts'
import { type Asked, Connection } from '../support/connection.ts'
import { fromSource, type Times, timesOf } from '../support/measuring.ts'

export interface Task {
  url: string
  token: string
  seconds: number
  /**
   * The number of concurrent requests. Alternatively, `aSecond` is the number of requests per
   * second.
   */
  atOnce?: number
  aSecond?: number
  /** The percentage of writes. */
  writes?: number
  /** Whether it sends requests for a second before it measures. */
  warmsUp?: boolean
}

export interface Figures {
  seconds: number
  statuses: Record<string, number>
  /** The times of successful replies, and of refusals with 429 or 503. */
  answered: Times
  refused: Times
  /** The times of requests that opened a connection. */
  opened: Times
  /** The times of successful writes. */
  written: Times
  /** The times without the first seconds, in which most connections are opened. */
  later: { answered: Times; refused: Times }
  /** The number of refusals without Retry-After, and of requests without a reply. */
  silent: number
  failed: number
}

const here = fileURLToPath(import.meta.url)

export function measure(task: Task): Promise<Figures> {
  const child = spawn(process.execPath, [...fromSource, here, JSON.stringify(task)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.on('data', (bytes: Buffer) => {
    output += bytes
  })
  return new Promise((resolve, reject) => {
    child.once('close', (code) => {
      if (code === 0) resolve(JSON.parse(output) as Figures)
      else reject(new Error(`Measuring ended with ${code}.`))
    })
  })
}

const rounded = (ms: number): number => Math.round(ms * 10) / 10

function roundedTimes(taken: number[]): Times {
  const { count, p50, p99, max } = timesOf(taken)
  return { count, p50: rounded(p50), p99: rounded(p99), max: rounded(max) }
}

const maxConnections = 4_000
const firstMs = 5_000
/** The warm-up in which the client's own code is compiled. */
const warmUpMs = 1_000
const warmUpAtOnce = 4
/** So few that they do not use up the rate limit of the token, however fast the machine is. */
const maxWarmUp = 200

async function run(task: Task): Promise<Figures> {
  const { seconds, atOnce, aSecond = 0, warmsUp = false } = task
  const caller = new Caller(task)
  let warmed = 0
  const warm = () => (warmed++ < maxWarmUp ? caller.one() : new Promise<void>((resolve) => setTimeout(resolve, 10)))
  if (warmsUp) await during(warmUpMs, warmUpAtOnce, warm)
  caller.forget()
  const elapsed = fineStopwatch()
  const asked: Promise<void>[] = []
  if (atOnce !== undefined) asked.push(during(seconds * 1000, atOnce, () => caller.one()))
  for (let made = 0; atOnce === undefined && elapsed() < seconds * 1000; ) {
    for (; made < (elapsed() / 1000) * aSecond; made++) asked.push(caller.one())
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
  await Promise.all(asked)
  const took = elapsed() / 1000
  caller.close()
  return { seconds: took, ...caller.figures() }
}

/** Keeps `atOnce` requests running for `ms` milliseconds. */
async function during(ms: number, atOnce: number, one: () => Promise<void>): Promise<void> {
  const elapsed = fineStopwatch()
  const next = async (): Promise<void> => {
    while (elapsed() < ms) await one()
  }
  await Promise.all(Array.from({ length: atOnce }, next))
}

/**
 * Sends each request on a free or a new connection. Its time is measured from the moment when it
 * was due.
 */
class Caller {
  readonly #task: Task
  readonly #free: Connection[] = []
  readonly #waiting: ((connection: Connection | Promise<Connection>) => void)[] = []
  #connections = 0
  #number = 0
  #answered: number[] = []
  #refused: number[] = []
  #opened: number[] = []
  #written: number[] = []
  readonly #later = { answered: [] as number[], refused: [] as number[] }
  #begun = fineStopwatch()
  #statuses: Record<string, number> = {}
  #silent = 0
  #failed = 0

  constructor(task: Task) {
    this.#task = task
  }

  async one(): Promise<void> {
    const asked = this.#next()
    const since = fineStopwatch()
    const isLater = this.#begun() >= firstMs
    try {
      const isNew = this.#free.length === 0 && this.#connections < maxConnections
      const connection = await this.#connection()
      const { status, head } = await connection.ask(asked)
      this.#free.push(connection)
      if (isNew) this.#opened.push(since())
      this.#statuses[status] = (this.#statuses[status] ?? 0) + 1
      const isRefused = status === 503 || status === 429
      ;(isRefused ? this.#refused : this.#answered).push(since())
      if (!isRefused && asked.method === 'POST') this.#written.push(since())
      if (isLater) this.#later[isRefused ? 'refused' : 'answered'].push(since())
      if (isRefused && !/\r\nretry-after: [1-9]\d*(\r|$)/i.test(head)) this.#silent++
    } catch {
      this.#connections--
      this.#failed++
    }
    this.#waiting.shift()?.(this.#free.pop() ?? this.#open())
  }

  #next(): Asked {
    const number = this.#number++
    if (number % 100 < (this.#task.writes ?? 0))
      return {
        method: 'POST',
        path: '/api/admin/sources',
        body: JSON.stringify({ name: `Source ${process.pid} ${number}` }),
      }
    const path = reads[number % reads.length] ?? ''
    return { method: 'GET', path: `/api/admin${path}${path.includes('?') ? number : ''}` }
  }

  #connection(): Connection | Promise<Connection> {
    const free = this.#free.pop()
    if (free) return free
    if (this.#connections < maxConnections) return this.#open()
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  #open(): Promise<Connection> {
    this.#connections++
    return Connection.open(this.#task.url, this.#task.token)
  }

  forget(): void {
    this.#begun = fineStopwatch()
    this.#answered = []
    this.#refused = []
    this.#opened = []
    this.#written = []
    this.#statuses = {}
  }

  figures(): Omit<Figures, 'seconds'> {
    return {
      statuses: this.#statuses,
      answered: roundedTimes(this.#answered),
      refused: roundedTimes(this.#refused),
      opened: roundedTimes(this.#opened),
      written: roundedTimes(this.#written),
      later: { answered: roundedTimes(this.#later.answered), refused: roundedTimes(this.#later.refused) },
      silent: this.#silent,
      failed: this.#failed,
    }
  }

  close(): void {
    for (const each of this.#free) each.close()
  }
}

const reads = ['/leads?per_page=10&lead_value[lt]=', '/leads/1', '/contacts/persons?id[not]=1']

if (process.argv[1] === here)
  process.stdout.write(JSON.stringify(await run(JSON.parse(process.argv[2] ?? '{}') as Task)))
