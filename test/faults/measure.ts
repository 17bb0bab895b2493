// Measures a server from a process of its own, so that nothing else the test does is in the figures: as many requests at a time
// as are answered, or so many a second whether they are answered or not. Its task is its argument, its figures are its output.
import { spawn } from 'node:child_process'
import { Agent, request } from 'node:http'
import { fileURLToPath } from 'node:url'
import { fromSource, type Times, timesOf } from '../support/measuring.ts'

export interface Task {
  url: string
  token: string
  seconds: number
  /** Either so many requests at once, each followed by the next one, or so many a second. */
  atOnce?: number
  aSecond?: number
  /** Of a hundred requests, so many write. */
  writes?: number
}

export interface Figures {
  seconds: number
  statuses: Record<string, number>
  /** Of those that were answered, and of those that were refused with 429 or 503. */
  answered: Times
  refused: Times
  /** Refusals that do not say when to come again, and requests that were not answered at all. */
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

async function run({ url, token, seconds, atOnce, aSecond = 0, writes = 0 }: Task): Promise<Figures> {
  const agent = new Agent({ keepAlive: true, maxSockets: 4_000, scheduling: 'fifo' })
  const answered: number[] = []
  const refused: number[] = []
  const statuses: Record<string, number> = {}
  let [silent, failed, made] = [0, 0, 0]

  function one(): Promise<void> {
    const number = made++
    const isWrite = number % 100 < writes
    const path = isWrite ? '/sources' : ['/leads?per_page=10', '/contacts/persons', '/leads/1', '/account'][number % 4]
    const body = isWrite ? JSON.stringify({ name: `Source ${process.pid} ${number}` }) : undefined
    const since = performance.now()
    return new Promise((resolve) => {
      const asked = request(`${url}/api/admin${path}`, {
        agent,
        method: isWrite ? 'POST' : 'GET',
        headers: {
          accept: 'application/json',
          authorization: `Bearer ${token}`,
          ...(body !== undefined && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
        },
      })
      asked.on('error', () => {
        failed++
        resolve()
      })
      asked.on('response', (reply) => {
        const status = reply.statusCode ?? 0
        reply.resume().on('end', () => {
          statuses[status] = (statuses[status] ?? 0) + 1
          const isRefused = status === 503 || status === 429
          ;(isRefused ? refused : answered).push(performance.now() - since)
          if (isRefused && !/^[1-9]\d*$/.test(String(reply.headers['retry-after']))) silent++
          resolve()
        })
      })
      asked.end(body)
    })
  }

  const start = performance.now()
  const elapsed = (): number => (performance.now() - start) / 1000
  const asked: Promise<void>[] = []
  if (atOnce !== undefined) {
    const next = async (): Promise<void> => {
      while (elapsed() < seconds) await one()
    }
    for (let index = 0; index < atOnce; index++) asked.push(next())
  } else {
    while (elapsed() < seconds) {
      while (made < elapsed() * aSecond) asked.push(one())
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
  }
  await Promise.all(asked)
  const took = elapsed()
  agent.destroy()
  return { seconds: took, statuses, answered: roundedTimes(answered), refused: roundedTimes(refused), silent, failed }
}

if (process.argv[1] === here)
  process.stdout.write(JSON.stringify(await run(JSON.parse(process.argv[2] ?? '{}') as Task)))
