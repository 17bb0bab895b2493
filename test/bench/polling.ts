// Measures the cost of polling during writes: for a minute, 20 tokens read a list and a record
// every second, and one lead is updated every second. `--program` compares another build.
import { parseArgs } from 'node:util'
import { openStore } from '../../db/store.ts'
import { issueToken } from '../../src/kernel/auth/tokens.ts'
import { Connection } from '../support/connection.ts'
import { timesOf } from '../support/measuring.ts'
import { fill, keptFolder } from './fill.ts'
import { copyOf, cpuMs, remove, start } from './servers.ts'

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    tokens: { type: 'string', default: '20' },
    writes: { type: 'string', default: '1' },
    program: { type: 'string' },
  },
})
const [seconds, tokens, writes] = [Number(values.seconds), Number(values.tokens), Number(values.writes)]
const everyMs = 1_000

async function tokensOf(folder: string): Promise<string[]> {
  const store = openStore(`sqlite:${folder}/data/accord.db`)
  const terms = { abilities: ['*'], expiresAt: null, allowedIps: [] } as const
  const issued: string[] = []
  for (let index = 0; index < tokens; index++) {
    const about = { userId: 1, name: `poller ${index}`, kind: 'personal', ...terms } as const
    issued.push((await issueToken(store.db, about, new Date().toISOString())).text)
  }
  await store.close()
  return issued
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Runs `work` every second, shifted by `index` / `parts` of a second, until the time is over. */
async function repeat(index: number, parts: number, work: (round: number) => Promise<void>): Promise<void> {
  const begin = performance.now() + (index * everyMs) / parts
  for (let round = 0; round < seconds; round++) {
    await pause(begin + round * everyMs - performance.now())
    await work(round)
  }
}

const filled = await fill(keptFolder(10_000), 10_000, console.log)
const folder = copyOf(filled.folder)
const issued = await tokensOf(folder)
const server = await start('accord', folder, values.program === undefined ? {} : { program: values.program })
const taken: number[] = []
try {
  const connect = (token: string): Promise<Connection> => Connection.open(server.url, token)
  const pollers = await Promise.all(issued.map(connect))
  const writer = await connect(filled.token)
  const before = cpuMs(server.pid)
  const ask = async (connection: Connection, path: string): Promise<void> => {
    const sent = performance.now()
    const { status } = await connection.ask({ method: 'GET', path })
    // Polls that a busy server refuses are not counted.
    if (status === 503) return
    if (status !== 200) throw new Error(`${path} answered ${status}.`)
    taken.push(performance.now() - sent)
  }
  const polls = pollers.map((connection, index) =>
    repeat(index, pollers.length, async () => {
      await ask(connection, '/api/admin/leads?sort=-updated_at&per_page=25')
      await ask(connection, `/api/admin/leads/${1 + index}`)
    }),
  )
  const writing = Array.from({ length: writes }, (_none, index) =>
    repeat(index, writes, async (round) => {
      const body = JSON.stringify({ title: `Polled ${index} ${round}` })
      const { status } = await writer.ask({ method: 'PUT', path: '/api/admin/leads/5000', body })
      if (status !== 200 && status !== 503) throw new Error(`A write answered ${status}.`)
    }),
  )
  await Promise.all([...polls, ...writing])
  const used = cpuMs(server.pid) - before
  const { count, p50, p99 } = timesOf(taken)
  console.log(
    `${count} polls: ${(used / count).toFixed(3)} CPU ms each with ${writes} writes a second, ` +
      `p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`,
  )
  for (const connection of [...pollers, writer]) connection.close()
} finally {
  await server.stop()
  remove(folder)
}
