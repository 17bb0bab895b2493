// Clients of event streams, as a separate process: follows the feed with many streams and counts
// the events of each, or measures the time of GET /healthz. The argument is the task. The process
// prints a line when it is ready, ends at SIGTERM, and then prints what it found.
import { type ChildProcess, spawn } from 'node:child_process'
import { get } from 'node:http'
import { fileURLToPath } from 'node:url'
import { fineStopwatch } from '../../src/kernel/runtime/clock.ts'
import { fromSource, type Times, timesOf } from '../support/measuring.ts'

export type Task = { url: string; tokens: readonly string[]; perToken: number } | { url: string; probeMs: number }

export interface Followed {
  /** The number of streams that received this many events. */
  received: Record<number, number>
}

const here = fileURLToPath(import.meta.url)

export interface Client<Found> {
  ready: Promise<void>
  /** Ends the process and returns what it found. */
  stop(): Promise<Found>
}

export const follow = (url: string, tokens: readonly string[], perToken: number): Client<Followed> =>
  start<Followed>({ url, tokens, perToken })

export const probe = (url: string, probeMs: number): Client<Times> => start<Times>({ url, probeMs })

function start<Found>(task: Task): Client<Found> {
  const child: ChildProcess = spawn(process.execPath, [...fromSource, here], { stdio: ['pipe', 'pipe', 'inherit'] })
  child.stdin?.end(JSON.stringify(task))
  let output = ''
  const ended = new Promise<Found>((resolve, reject) => {
    child.once('close', (code) => {
      if (code === 0) resolve(JSON.parse(output.split('\n')[1] ?? '') as Found)
      else reject(new Error(`The client ended with ${code}.`))
    })
  })
  const ready = new Promise<void>((resolve) => {
    child.stdout?.on('data', (bytes: Buffer) => {
      output += bytes
      if (output.includes('\n')) resolve()
    })
  })
  return {
    ready: Promise.race([ready, ended.then(() => undefined)]),
    stop: () => {
      child.kill('SIGTERM')
      return ended
    },
  }
}

const untilTerminated = (): Promise<void> =>
  new Promise((resolve) => {
    const alive = setInterval(() => undefined, 60_000)
    process.once('SIGTERM', () => {
      clearInterval(alive)
      resolve()
    })
  })

async function followAll({ url, tokens, perToken }: Extract<Task, { tokens: unknown }>): Promise<Followed> {
  const counts: number[] = []
  const open = (token: string): Promise<void> =>
    new Promise((resolve, reject) => {
      const index = counts.push(0) - 1
      get(
        `${url}/api/admin/events`,
        { headers: { accept: 'text/event-stream', authorization: `Bearer ${token}` }, agent: false },
        (reply) => {
          if (reply.statusCode !== 200) reject(new Error(`A stream answered ${reply.statusCode}.`))
          reply.setEncoding('utf8')
          reply.on('error', () => undefined)
          reply.on('data', (text: string) => {
            counts[index] = (counts[index] ?? 0) + text.split('\nevent: ').length - 1
          })
          resolve()
        },
      ).on('error', reject)
    })
  for (const token of tokens) await Promise.all(Array.from({ length: perToken }, () => open(token)))
  process.stdout.write('ready\n')
  await untilTerminated()
  const received: Record<number, number> = {}
  for (const count of counts) received[count] = (received[count] ?? 0) + 1
  return { received }
}

async function probeHealth({ url, probeMs }: Extract<Task, { probeMs: unknown }>): Promise<Times> {
  const taken: number[] = []
  const ask = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const since = fineStopwatch()
      get(`${url}/healthz`, (reply) => {
        reply.resume()
        reply.once('end', () => {
          taken.push(since())
          resolve()
        })
      }).on('error', reject)
    })
  await ask()
  taken.length = 0
  process.stdout.write('ready\n')
  let isOver = false
  const over = untilTerminated().then(() => {
    isOver = true
  })
  while (!isOver) {
    await ask()
    await Promise.race([over, new Promise((resolve) => setTimeout(resolve, probeMs))])
  }
  return timesOf(taken)
}

async function run(): Promise<void> {
  let text = ''
  for await (const part of process.stdin) text += part
  const task = JSON.parse(text) as Task
  const found = 'tokens' in task ? await followAll(task) : await probeHealth(task)
  process.stdout.write(`${JSON.stringify(found)}\n`, () => process.exit(0))
}

if (process.argv[1] === here) await run()
