// `npm run bench`: what requests cost this program, and what they cost a server written by hand for nothing else (limit.ts), side by
// side in one run. README.md says how it is to be read.
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Client } from './client.ts'
import { fill, keptFolder } from './fill.ts'
import { measure } from './measure.ts'
import { machine, type Row, table } from './report.ts'
import { type Kind, kinds } from './requests.ts'
import { mustAnswerTheSame } from './same.ts'
import { copyOf, remove, type Server, start } from './servers.ts'

export interface Options {
  leads: number
  kinds: readonly Kind[]
  rounds: number
  seconds: number
  requests: number
  /** Where the filled folder is kept. */
  folder?: string
  /** Where accord writes its profile. */
  profile?: string
}

/** Both servers on fresh copies, compared and then measured. */
export async function bench(options: Options, say: (text: string) => void): Promise<Row[]> {
  const { leads, rounds, seconds, requests } = options
  const filled = await fill(options.folder ?? keptFolder(leads), leads, say)
  const world = { leads, email: filled.email, password: filled.password }
  const { token } = filled
  const profiling = options.profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${options.profile}`]
  const copies: string[] = []
  const running: Server[] = []
  const client = new Client()
  try {
    const begin = async (name: 'accord' | 'limit', node: string[] = []): Promise<Server> => {
      const folder = copyOf(filled.folder)
      copies.push(folder)
      const server = await start(name, folder, { node })
      running.push(server)
      return server
    }
    const servers = [await begin('accord', profiling), await begin('limit')] as const
    await mustAnswerTheSame(servers, options.kinds, { world, token, times: 5 })
    say(`Both servers answer the same bytes and leave the same rows: ${options.kinds.join(', ')}.`)
    const rows: Row[] = []
    for (const kind of options.kinds) {
      const row = await measure(client, servers, kind, { world, token, rounds, seconds, requests })
      say(table([row]).split('\n')[1] ?? '')
      rows.push(row)
    }
    return rows
  } finally {
    client.stop()
    for (const server of running) await server.stop()
    for (const copy of copies) remove(copy)
  }
}

export function build(): void {
  const folder = fileURLToPath(new URL('../..', import.meta.url))
  execFileSync('npm', ['run', '--silent', 'build'], { cwd: folder, stdio: 'inherit' })
}

const path = (file: string): string => fileURLToPath(new URL(file, import.meta.url))

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      leads: { type: 'string', default: '10000' },
      all: { type: 'boolean', default: false },
      only: { type: 'string' },
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '1' },
      'no-build': { type: 'boolean', default: false },
      baseline: { type: 'boolean', default: false },
      profile: { type: 'string' },
    },
  })
  if (!values['no-build']) build()
  const wanted = values.only?.split(',').map((name) => name.trim())
  const unknown = wanted?.filter((name) => !kinds.some((kind) => kind === name)) ?? []
  if (unknown.length > 0) throw new Error(`There is no row ${unknown.join(', ')}; there are: ${kinds.join(', ')}.`)
  const chosen = kinds.filter((kind) => wanted?.includes(kind) ?? true)
  const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)]
  const numbers = values.all ? [10_000, 100_000, 1_000_000] : values.leads.split(',').map(Number)
  const rows: Row[] = []
  for (const leads of numbers) {
    const options = { leads, kinds: chosen, rounds, seconds, requests: 50_000 }
    rows.push(...(await bench({ ...options, ...(values.profile && { profile: values.profile }) }, console.log)))
  }
  console.log(`\n${table(rows)}`)
  if (values.baseline) {
    const baseline = { date: new Date().toISOString(), machine: machine(), rows }
    writeFileSync(path('baseline.json'), `${JSON.stringify(baseline, null, 2)}\n`)
  }
}

if (process.argv[1] === path('run.ts')) await main()
