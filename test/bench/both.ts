// Starts both servers on fresh copies of a filled folder, compares their replies, then measures
// each kind of request.
import { Client } from './client.ts'
import type { Filled } from './fill.ts'
import { measure } from './measure.ts'
import { connectProfiler } from './profile.ts'
import { type Row, table } from './report.ts'
import type { Kind } from './requests.ts'
import { mustAnswerTheSame } from './same.ts'
import { copyOf, quiet, remove, type Server, start } from './servers.ts'

export interface Options {
  kinds: readonly Kind[]
  rounds: number
  /** The limits of a round of one server: seconds and number of requests. */
  seconds: number
  requests: number
  /** The folder for CPU profiles of accord, one per kind of request. */
  profile?: string
  /** Another build of accord. */
  program?: string
  /** Disables the response cache of older builds. */
  fresh?: boolean
}

export type Say = (text: string) => void

export async function measureBoth(filled: Filled, options: Options, say: Say): Promise<Row[]> {
  const { kinds, rounds, seconds, requests, profile, program, fresh = false } = options
  const { leads, email, password, token } = filled
  const world = { leads, email, password }
  const node = profile === undefined ? [] : ['--inspect=127.0.0.1:0']
  const folders = [copyOf(filled.folder), copyOf(filled.folder)] as const
  const running: Server[] = []
  const client = new Client()
  try {
    const accord = await start('accord', folders[0], { node, fresh, ...(program && { program }) })
    running.push(accord)
    const limit = await start('limit', folders[1])
    running.push(limit)
    const servers = [accord, limit] as const
    await mustAnswerTheSame(servers, kinds, { world, token, times: 5 })
    say(`Both servers answer the same bytes and leave the same rows: ${kinds.join(', ')}.`)
    // Waits until the work after the start is done.
    await quiet(accord, 30 * seconds)
    const profiler = accord.inspector && profile ? await connectProfiler(accord.inspector, profile) : null
    const rows: Row[] = []
    for (const kind of kinds) {
      const plan = { world, token, rounds, seconds, requests, warm: () => profiler?.begin() }
      const row = await measure(client, servers, kind, plan)
      await profiler?.end(kind)
      say(table([row]).split('\n')[1] ?? '')
      rows.push(row)
    }
    profiler?.close()
    return rows
  } finally {
    client.stop()
    for (const server of running) await server.stop()
    folders.forEach(remove)
  }
}
