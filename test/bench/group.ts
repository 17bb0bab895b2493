// What it brings to commit many writes at once: leads created by 64 clients at a time and by one, against commits one by one, all of
// them on the disk before they are answered.
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import type { Client } from './client.ts'
import { median } from './report.ts'
import type { World } from './requests.ts'
import { copyOf, type Name, remove, start } from './servers.ts'

export interface Rates {
  /** Creates a second. */
  accord64: number
  accord1: number
  limit64: number
  /** Commits a second of one row each, by a program that does nothing else. */
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

export async function groupCommit(client: Client, wish: Wish): Promise<Rates> {
  const { token, world, rounds, seconds, program } = wish
  const folders = [copyOf(wish.folder), copyOf(wish.folder)] as const
  const accord = await start('accord', folders[0], program === undefined ? {} : { program })
  const limit = await start('limit', folders[1])
  const found = { accord64: [] as number[], accord1: [] as number[], limit64: [] as number[] }
  const rate = async ({ url }: { url: string; name: Name }, connections: number, round: number): Promise<number> => {
    const bounds = { seconds, requests: 100_000, connections, seed: 100 * connections + round }
    const done = await client.run({ url, token, world, kinds: ['create'], ...bounds })
    return done.requests / done.seconds
  }
  try {
    for (let round = 0; round <= rounds; round++) {
      const rates = {
        accord64: await rate(accord, 64, round),
        limit64: await rate(limit, 64, round),
        accord1: await rate(accord, 1, round),
      }
      // The first round warms up.
      if (round > 0) for (const name of ['accord64', 'accord1', 'limit64'] as const) found[name].push(rates[name])
    }
    const middle = { accord64: median(found.accord64), accord1: median(found.accord1), limit64: median(found.limit64) }
    await limit.stop()
    return { ...middle, commits: commitsOn(folders[1], seconds) }
  } finally {
    await accord.stop()
    await limit.stop()
    folders.forEach(remove)
  }
}

/** The limit of the disk: a transaction of one small row, again and again. */
function commitsOn(folder: string, seconds: number): number {
  const database = new Sqlite(join(folder, 'data/accord.db'))
  database.pragma('journal_mode = wal')
  database.pragma('synchronous = full')
  const change = database.prepare('update leads set version = version + 1 where id = ?')
  const since = performance.now()
  let count = 0
  for (; performance.now() - since < seconds * 1000; count++) change.run((count % 100) + 1)
  const took = (performance.now() - since) / 1000
  database.close()
  return count / took
}
