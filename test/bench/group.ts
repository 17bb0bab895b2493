// Measures the benefit of group commit: 64 clients create leads on accord, on accord without group
// commit, and on the limit server, which has none. Every reply waits for the disk. For comparison,
// measures the rate of the database alone.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Client } from './client.ts'
import { openDatabase } from './limit.database.ts'
import { createReader } from './limit.read.ts'
import { createWriter } from './limit.write.ts'
import { median } from './report.ts'
import { requestOf, type World, walkFrom } from './requests.ts'
import { copyOf, remove, type Server, start } from './servers.ts'

const clients = 64
/** The warm-up, in which V8 compiles the hot code. */
const warmUp = { requests: 10_000, seconds: 20 }

interface Measured {
  /** Creates per second. */
  accord64: number
  /** The 99th percentile of the replies to 64 clients, in milliseconds. */
  accordP99: number
  limitP99: number
  /** The rate with `ACCORD_GROUP_COMMIT_MS=0`. */
  alone64: number
  limit64: number
  accord1: number
}

export interface Rates extends Measured {
  /**
   * Leads per second when the SQL of the server `limit` runs without HTTP. `together` commits 64
   * leads at once, `apart` commits each lead alone.
   */
  together: number
  apart: number
  /** The rate of commits with a single changed row. */
  commits: number
}

interface Wish {
  folder: string
  token: string
  world: World
  rounds: number
  seconds: number
  program?: string
}

export async function groupCommit(
  client: Client,
  { token, world, rounds, seconds, program, ...wish }: Wish,
): Promise<Rates> {
  const folders = [0, 1, 2, 3].map(() => copyOf(wish.folder)) as [string, string, string, string]
  const running: Server[] = []
  const begin = async (...how: Parameters<typeof start>): Promise<Server> => {
    const server = await start(...how)
    running.push(server)
    return server
  }
  const ask = async ({ url }: Server, connections: number, seed: number, bounds = { seconds, requests: 100_000 }) => {
    const done = await client.run({ url, token, world, kinds: ['create'], ...bounds, connections, seed })
    return { rate: done.requests / done.seconds, p99: done.p99 }
  }
  const found: Record<keyof Measured, number[]> = {
    accord64: [],
    alone64: [],
    limit64: [],
    accord1: [],
    accordP99: [],
    limitP99: [],
  }
  try {
    const built = program === undefined ? {} : { program }
    const accord = await begin('accord', folders[0], built)
    const alone = await begin('accord', folders[1], { ...built, settings: { ACCORD_GROUP_COMMIT_MS: '0' } })
    const limit = await begin('limit', folders[2])
    for (const server of running) await ask(server, clients, 0, warmUp)
    for (let round = 1; round <= rounds; round++) {
      const [shared, single] = [await ask(accord, clients, round), await ask(limit, clients, round)]
      found.accord64.push(shared.rate)
      found.accordP99.push(shared.p99)
      found.limit64.push(single.rate)
      found.limitP99.push(single.p99)
      found.alone64.push((await ask(alone, clients, round)).rate)
      found.accord1.push((await ask(accord, 1, 1_000 + round)).rate)
    }
    for (const server of running) await server.stop()
    const middle = Object.fromEntries(Object.entries(found).map(([name, rates]) => [name, median(rates)]))
    return { ...(middle as unknown as Measured), ...onTheDisk(folders[3], world, { rounds, seconds }) }
  } finally {
    await Promise.allSettled(running.map((server) => server.stop()))
    folders.forEach(remove)
  }
}

/**
 * Measures the database alone: the same rows with the same statements, and transactions that change
 * one row.
 */
function onTheDisk(folder: string, world: World, { rounds, seconds }: { rounds: number; seconds: number }) {
  const database = openDatabase(folder)
  const secret = readFileSync(join(folder, 'data/secret'), 'utf8').trim()
  const { create } = createWriter(database, createReader(database, { base: '', secret }), { tokenId: 1 })
  const bodies = Array.from({ length: clients }, (_, index) =>
    JSON.parse(requestOf('create', world, { seed: 1, index }, walkFrom(1)).body as string),
  )
  const all = (): void => {
    for (const body of bodies) create(body, '127.0.0.1')
  }
  const inOne = database.transaction(all).immediate
  const found = { together: [] as number[], apart: [] as number[] }
  const rate = (work: () => void): number => {
    const since = performance.now()
    let count = 0
    for (; performance.now() - since < seconds * 500; count++) work()
    return count / ((performance.now() - since) / 1000)
  }
  for (let round = 0; round <= rounds; round++) {
    const rates = { together: clients * rate(inOne), apart: clients * rate(all) }
    // The first round is a warm-up.
    if (round > 0) for (const name of ['together', 'apart'] as const) found[name].push(rates[name])
  }
  const change = database.prepare('update leads set version = version + 1 where id = ?')
  const commits = rate(() => change.run(1))
  database.close()
  return { together: median(found.together), apart: median(found.apart), commits }
}
