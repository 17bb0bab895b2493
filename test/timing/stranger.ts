// A stranger, as a separate process: sends dear bodies one after another on one connection, plain,
// in chunks and compressed, to both APIs. The argument is the task, and the output the statuses.
import { spawn } from 'node:child_process'
import { Agent, request } from 'node:http'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { dearBodies } from '../support/dear-bodies.ts'
import { fromSource } from '../support/measuring.ts'

export interface Task {
  url: string
  seconds: number
}

export interface Sent {
  statuses: Record<string, number>
  /** The number of different requests. */
  kinds: number
  /** The number of requests whose connection ended without a reply. */
  cut: number
}

const here = fileURLToPath(import.meta.url)
/** Another loopback address than that of the other callers. */
const localAddress = '127.0.0.2'
const paths = ['/api/admin/login', '/api/admin/leads', '/api/v1/login', '/api/v1/leads', '/web-forms/forms/none']
const chunkBytes = 64 * 1024

/** Sends requests until the time has passed. */
export function sendAsStranger(task: Task): Promise<Sent> {
  const child = spawn(process.execPath, [...fromSource, here, JSON.stringify(task)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.on('data', (bytes: Buffer) => {
    output += bytes
  })
  return new Promise((resolve, reject) => {
    child.once('close', (code) => {
      if (code === 0) resolve(JSON.parse(output) as Sent)
      else reject(new Error(`The stranger ended with ${code}.`))
    })
  })
}

interface Dear {
  path: string
  headers: Record<string, string>
  pieces: Buffer[]
}

/** Returns each body in three forms for each path. */
function dearRequests(): Dear[] {
  return dearBodies().flatMap(({ type, body }) => {
    const whole = Buffer.from(body)
    const packed = gzipSync(whole)
    const chunks: Buffer[] = []
    for (let from = 0; from < whole.length; from += chunkBytes) chunks.push(whole.subarray(from, from + chunkBytes))
    const usual = { 'content-type': type, accept: 'application/json' }
    return paths.flatMap((path) => [
      { path, headers: { ...usual, 'content-length': String(whole.length) }, pieces: [whole] },
      { path, headers: { ...usual, 'transfer-encoding': 'chunked' }, pieces: chunks },
      {
        path,
        headers: { ...usual, 'content-encoding': 'gzip', 'content-length': String(packed.length) },
        pieces: [packed],
      },
    ])
  })
}

/** Sends a request and returns the status, or null when the connection ended without a reply. */
function send(url: string, agent: Agent, { path, headers, pieces }: Dear): Promise<number | null> {
  return new Promise((resolve) => {
    const sent = request(`${url}${path}`, { method: 'POST', agent, headers, localAddress }, (reply) => {
      reply.resume()
      reply.once('close', () => resolve(reply.statusCode ?? null))
    })
    // The server closes the connection while it refuses a body.
    sent.once('error', () => resolve(null))
    for (const piece of pieces) sent.write(piece)
    sent.end()
  })
}

async function run({ url, seconds }: Task): Promise<Sent> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const all = dearRequests()
  const sent: Sent = { statuses: {}, kinds: all.length, cut: 0 }
  const ends = performance.now() + seconds * 1000
  // A stride that shares no factor with the number of requests mixes bodies, forms and paths.
  for (let at = 0; performance.now() < ends; at++) {
    const status = await send(url, agent, all[(at * 7) % all.length] as Dear)
    if (status === null) sent.cut++
    else sent.statuses[status] = (sent.statuses[status] ?? 0) + 1
  }
  agent.destroy()
  return sent
}

if (process.argv[1] === here)
  process.stdout.write(JSON.stringify(await run(JSON.parse(process.argv[2] ?? '{}') as Task)))
