// Requests leads at a fixed rate, without waiting for replies. Runs as a separate process, so that
// other parts of a measurement do not affect its times.
import { spawn } from 'node:child_process'
import { Agent, request } from 'node:http'
import { fileURLToPath } from 'node:url'
import { fromSource, type Times, timesOf } from '../support/measuring.ts'

export interface Task {
  url: string
  token: string
  leads: number
  aSecond: number
}

export interface Figures extends Times {
  notOk: number
}

const here = fileURLToPath(import.meta.url)

/** Sends requests while `work` runs. */
export async function during<T>(task: Task, work: () => Promise<T>): Promise<{ figures: Figures; done: T }> {
  const child = spawn(process.execPath, [...fromSource, here, JSON.stringify(task)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.on('data', (bytes: Buffer) => {
    output += bytes
  })
  const ended = new Promise<void>((done) => child.once('close', () => done()))
  // The child process has to start first.
  await new Promise((done) => child.stdout.once('data', done))
  try {
    const done = await work()
    child.stdin.end()
    await ended
    return { figures: JSON.parse(output.split('\n')[1] ?? '') as Figures, done }
  } finally {
    child.kill()
  }
}

async function ask({ url, token, leads, aSecond }: Task): Promise<Figures> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1000, scheduling: 'fifo' })
  const headers = { accept: 'application/json', authorization: `Bearer ${token}` }
  const taken: number[] = []
  let [made, notOk, isOver] = [0, 0, false]
  process.stdin.resume().once('end', () => {
    isOver = true
  })

  const one = (): Promise<void> =>
    new Promise((done) => {
      // Each request reads another lead, and each run the same leads.
      const path = `/api/admin/leads/${1 + ((made++ * 7919) % leads)}`
      const since = performance.now()
      const fail = (): void => {
        notOk++
        done()
      }
      request(`${url}${path}`, { agent, headers })
        .on('error', fail)
        .on('response', (reply) => {
          reply.resume().on('end', () => {
            if (reply.statusCode !== 200) return fail()
            taken.push(performance.now() - since)
            done()
          })
        })
        .end()
    })

  // Warm-up: the first requests of a new process are slow in the client and must not count.
  for (let warm = 0; warm < 500; warm++) await one()
  taken.length = 0
  process.stdout.write('asking\n')
  const start = performance.now()
  const asked: Promise<void>[] = []
  while (!isOver) {
    while (asked.length < ((performance.now() - start) / 1000) * aSecond) asked.push(one())
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  await Promise.all(asked)
  agent.destroy()
  return { ...timesOf(taken), notOk }
}

if (process.argv[1] === here)
  process.stdout.write(JSON.stringify(await ask(JSON.parse(process.argv[2] ?? '{}') as Task)))
