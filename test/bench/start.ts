// Measures the time from the start of the program to its first replies, and its memory when idle
// and after many requests.
import { Connection } from '../support/connection.ts'
import type { Client } from './client.ts'
import { median } from './report.ts'
import type { World } from './requests.ts'
import { copyOf, memoryMb, remove, start } from './servers.ts'

export interface Started {
  /** Milliseconds from the start to the first 200. */
  health: number
  leads: number
  /** Resident megabytes five seconds after the start. */
  idleMb: number
}

export interface Loaded {
  /** The resident memory in megabytes after the requests, and its maximum. */
  loadedMb: number
  maxMb: number
}

export interface Wish {
  folder: string
  token: string
  program?: string
  times: number
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/**
 * Starts a server and returns the time to its first reply. Sends only one request, because later
 * requests are faster.
 */
async function firstAnswer({ folder, token, program }: Wish, path: string): Promise<number> {
  const since = performance.now()
  const server = await start('accord', folder, program === undefined ? {} : { program })
  try {
    const connection = await Connection.open(server.url, token)
    const { status } = await connection.ask({ method: 'GET', path })
    const took = performance.now() - since
    connection.close()
    if (status !== 200) throw new Error(`${path} answered ${status}.`)
    return took
  } finally {
    await server.stop()
  }
}

export async function startUp(wish: Wish): Promise<Started> {
  const times = { health: [] as number[], leads: [] as number[] }
  const folder = copyOf(wish.folder)
  try {
    for (let index = 0; index < wish.times; index++) {
      times.health.push(await firstAnswer({ ...wish, folder }, '/healthz'))
      times.leads.push(await firstAnswer({ ...wish, folder }, '/api/admin/leads?per_page=1'))
    }
    const server = await start('accord', folder, wish.program === undefined ? {} : { program: wish.program })
    await pause(5_000)
    const idleMb = memoryMb(server.pid).now
    await server.stop()
    return { health: median(times.health), leads: median(times.leads), idleMb }
  } finally {
    remove(folder)
  }
}

/**
 * Returns the memory after this many requests of all kinds except logins. One in ten is a write.
 */
export async function memory(
  client: Client,
  { folder: from, token, program }: Wish,
  { world, requests }: { world: World; requests: number },
): Promise<Loaded> {
  const folder = copyOf(from)
  const server = await start('accord', folder, program === undefined ? {} : { program })
  try {
    const kinds = ['list', 'show', 'filtered', 'show', 'cursor', 'show', 'sorted', 'show', 'list', 'create'] as const
    const bounds = { connections: 8, seed: 5, seconds: 3_600, requests }
    await client.run({ url: server.url, token, world, kinds: [...kinds], ...bounds })
    const { now, most } = memoryMb(server.pid)
    return { loadedMb: now, maxMb: most }
  } finally {
    await server.stop()
    remove(folder)
  }
}
