// The load generator, a separate process. `Client` sends it each task as a message and receives the
// results.
import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { Connection } from '../support/connection.ts'
import { fromSource, type Times, timesOf } from '../support/measuring.ts'
import { type Kind, requestOf, type Walk, type World, walkFrom, walkOn } from './requests.ts'

export interface Task {
  url: string
  /** Other servers of the same database. Connections are distributed over all servers. */
  others?: string[]
  token: string
  world: World
  /** The kinds of the requests, used in turn. */
  kinds: Kind[]
  connections: number
  seed: number
  /** A task ends at the first of these limits. */
  seconds: number
  requests: number
}

export interface Figures extends Omit<Times, 'count'> {
  requests: number
  seconds: number
  /** The number of requests that got 503 and were repeated. */
  refused: number
}

const here = fileURLToPath(import.meta.url)

export class Client {
  readonly #child: ChildProcess

  constructor() {
    this.#child = spawn(process.execPath, [...fromSource, here], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  }

  run(task: Task): Promise<Figures> {
    return new Promise((resolve, reject) => {
      const ended = (code: number | null): void => reject(new Error(`The client ended with ${code}.`))
      this.#child.once('close', ended)
      this.#child.once('message', (message: Figures | { failed: string }) => {
        this.#child.off('close', ended)
        if ('failed' in message) reject(new Error(message.failed))
        else resolve(message)
      })
      this.#child.send(task)
    })
  }

  stop(): void {
    this.#child.disconnect()
  }
}

/** Walks by connection, because a walk continues in the next round. */
const walks = new Map<string, Walk>()
function walkOf(task: Task, index: number): Walk {
  const name = `${task.url} ${index}`
  const walk = walks.get(name) ?? walkFrom(index + 1)
  walks.set(name, walk)
  return walk
}

async function run(task: Task): Promise<Figures> {
  const { world, kinds, seed, token } = task
  const urls = [task.url, ...(task.others ?? [])]
  const connections = await Promise.all(
    Array.from({ length: task.connections }, (_, index) => Connection.open(urls[index % urls.length] ?? '', token)),
  )
  const taken: number[] = []
  let index = 0
  let refused = 0
  const since = performance.now()
  const until = since + task.seconds * 1000
  await Promise.all(
    connections.map(async (connection, number) => {
      const walk = walkOf(task, number)
      while (index < task.requests && performance.now() < until) {
        const kind = kinds[index % kinds.length] as Kind
        const asked = requestOf(kind, world, { seed, index: index++ }, walk)
        const sent = performance.now()
        const { status, body } = await connection.ask(asked)
        if (status === 503) {
          refused++
          await new Promise((resolve) => setTimeout(resolve, 100))
          continue
        }
        taken.push(performance.now() - sent)
        if (status >= 300) throw new Error(`${asked.method} ${asked.path} answered ${status}: ${body}`)
        if (kind === 'cursor') walkOn(walk, body.toString())
      }
    }),
  )
  const seconds = (performance.now() - since) / 1000
  for (const connection of connections) connection.close()
  const { count, ...times } = timesOf(taken)
  return { requests: count, seconds, ...times, refused }
}

if (process.argv[1] === here) {
  process.on('message', (task: Task) => {
    run(task).then(
      (figures) => process.send?.(figures),
      (cause: unknown) => process.send?.({ failed: String(cause) }),
    )
  })
}
