// `npx tsx test/bench/scale.ts` sends the same requests to SQLite and to PostgreSQL with several
// numbers of processes. README.md explains the results.
import { execFileSync } from 'node:child_process'
import { cpus } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Client } from './client.ts'
import { fill, keptFolder } from './fill.ts'
import { median } from './report.ts'
import { type Kind, kinds, type World } from './requests.ts'
import { openTargets, type Target } from './scale.targets.ts'
import { treeCpuMs } from './servers.ts'

const { values } = parseArgs({
  options: {
    leads: { type: 'string', default: '10000' },
    processes: { type: 'string', default: '1,2,4' },
    only: { type: 'string', default: 'list,show,kanban,create' },
    clients: { type: 'string', default: '16' },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '1' },
    'no-build': { type: 'boolean', default: false },
  },
})

interface Turn {
  perSecond: number
  p50: number
  p99: number
  /** The CPU time per request in milliseconds, of the server and of the database server. */
  server: number
  database: number
  refused: number
}

interface Wish {
  world: World
  token: string
  clients: number
  rounds: number
  seconds: number
}

async function turn(client: Client, target: Target, kind: Kind, seed: number, wish: Wish): Promise<Turn> {
  const { world, token, clients: connections } = wish
  // The warm-up needs some thousand requests, which take a slow server some seconds.
  const isWarmUp = seed === 0
  const bounds = isWarmUp ? { seconds: 8 * wish.seconds, requests: 5_000 } : { seconds: wish.seconds, requests: 50_000 }
  const busy = (pids: readonly number[]): number => pids.reduce((sum, pid) => sum + treeCpuMs(pid), 0)
  const before = [busy(target.servers), busy(target.databases)] as const
  const { url, others } = target
  const done = await client.run({
    url,
    others,
    token,
    world,
    kinds: [kind],
    connections,
    seed: 1_000 + seed,
    ...bounds,
  })
  const used = [busy(target.servers) - before[0], busy(target.databases) - before[1]] as const
  const [server, database] = used.map((ms) => ms / done.requests) as [number, number]
  const { p50, p99, refused } = done
  return { perSecond: done.requests / done.seconds, p50, p99, server, database, refused }
}

/** Measures all targets in turn in each round. Round 0 is the warm-up. */
async function measureKind(client: Client, targets: readonly Target[], kind: Kind, wish: Wish): Promise<string[][]> {
  const turns = targets.map(() => [] as Turn[])
  for (let round = 0; round <= wish.rounds; round++)
    for (const [index, target] of targets.entries()) {
      const done = await turn(client, target, kind, round, wish)
      if (round > 0) turns[index]?.push(done)
    }
  const middle = (index: number, key: keyof Turn): number => median((turns[index] ?? []).map((each) => each[key]))
  return targets.map(({ name }, index) => [
    wish.world.leads.toLocaleString('en-US'),
    kind,
    name,
    (middle(index, 'perSecond') / middle(0, 'perSecond')).toFixed(2),
    middle(index, 'perSecond').toFixed(0),
    middle(index, 'p50').toFixed(1),
    middle(index, 'p99').toFixed(1),
    middle(index, 'server').toFixed(2),
    middle(index, 'database').toFixed(2),
    String((turns[index] ?? []).reduce((sum, { refused }) => sum + refused, 0)),
  ])
}

const head = ['N', 'request', 'target', 'rate', 'req/s', 'p50', 'p99', 'CPU ms server', 'database', '503']

function laidOut(rows: readonly string[][]): string {
  const all = [head, ...rows]
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)))
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => (column < 3 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join('  ')
  return all.map(line).join('\n')
}

const asked = values.only.split(',')
const unknown = asked.filter((name) => !(kinds as readonly string[]).includes(name))
if (unknown.length > 0) throw new Error(`There is no request ${unknown.join(', ')}; there are: ${kinds.join(', ')}.`)
if (!values['no-build'])
  execFileSync('npm', ['run', '--silent', 'build'], {
    cwd: fileURLToPath(new URL('../..', import.meta.url)),
    stdio: 'inherit',
  })
const rows: string[][] = []
for (const leads of values.leads.split(',').map(Number)) {
  const filled = await fill(keptFolder(leads), leads, console.log)
  const { token, email, password } = filled
  const numbers = { clients: Number(values.clients), rounds: Number(values.rounds), seconds: Number(values.seconds) }
  const wish = { world: { leads, email, password }, token, ...numbers }
  const { targets, close } = await openTargets(filled, values.processes.split(',').map(Number), console.log)
  const client = new Client()
  try {
    for (const kind of asked as Kind[]) {
      const measured = await measureKind(client, targets, kind, wish)
      rows.push(...measured)
      console.log(laidOut(measured))
    }
  } finally {
    client.stop()
    await close()
  }
}
console.log(`\n${laidOut(rows)}\n\n${cpus().length} cores, ${values.clients} connections`)
