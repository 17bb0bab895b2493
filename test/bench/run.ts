// `npm run bench` compares the cost of requests to this program and to a minimal handwritten server
// (limit.ts). README.md explains the results.
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { measureBoth } from './both.ts'
import { Client } from './client.ts'
import { fill, keptFolder } from './fill.ts'
import { groupCommit, type Rates } from './group.ts'
import { growth, growthTable } from './growth.ts'
import { machine, type Row, ratesTable, startedTable, table } from './report.ts'
import { kinds } from './requests.ts'
import { type Loaded, memory, type Started, startUp } from './start.ts'
import { draw } from './svg.ts'

const path = (file: string): string => fileURLToPath(new URL(file, import.meta.url))
/** The rows of the table that are not kinds of requests. */
const others = ['start', 'group']

const { values } = parseArgs({
  options: {
    leads: { type: 'string', default: '10000' },
    all: { type: 'boolean', default: false },
    only: { type: 'string' },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '1' },
    memory: { type: 'boolean', default: false },
    fresh: { type: 'boolean', default: false },
    baseline: { type: 'boolean', default: false },
    growth: { type: 'boolean', default: false },
    engines: { type: 'string', default: 'sqlite,postgres' },
    to: { type: 'string' },
    profile: { type: 'string' },
    program: { type: 'string' },
    'no-build': { type: 'boolean', default: false },
  },
})
const { fresh, profile, program } = values
const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)]
const numbers = values.all ? [10_000, 100_000, 1_000_000] : values.leads.split(',').map(Number)
const asked = values.only?.split(',').map((name) => name.trim()) ?? [...kinds, ...others]
const known: readonly string[] = [...kinds, ...others]
const unknown = values.growth ? [] : asked.filter((name) => !known.includes(name))
if (unknown.length > 0) throw new Error(`There is no row ${unknown.join(', ')}; there are: ${known.join(', ')}.`)
if (!values['no-build'] && program === undefined)
  execFileSync('npm', ['run', '--silent', 'build'], { cwd: path('../..'), stdio: 'inherit' })

const say = (text: string): void => console.log(text)
if (values.growth) {
  const all = await growth(
    {
      leads: (values.leads === '10000' ? '1000,10000,100000' : values.leads).split(',').map(Number),
      engines: values.engines.split(',') as ('sqlite' | 'postgres')[],
      only: new RegExp(values.only ?? ''),
      ...(program === undefined ? {} : { program }),
      ...(values.to === undefined ? {} : { to: values.to }),
    },
    say,
  )
  say(`\n${growthTable(all, { ratio: 3, ms: 50 })}`)
  process.exit()
}
const ways = { rounds, seconds, fresh, requests: 50_000, ...(profile && { profile }), ...(program && { program }) }
const chosen = kinds.filter((kind) => asked.includes(kind))
const rows: Row[] = []
for (const leads of numbers) {
  const filled = await fill(keptFolder(leads), leads, say)
  if (chosen.length > 0) rows.push(...(await measureBoth(filled, { ...ways, kinds: chosen }, say)))
}

const { folder, token, email, password, leads } = await fill(keptFolder(numbers[0] ?? 10_000), numbers[0] ?? 10_000)
const wish = { folder, token, times: rounds, ...(program === undefined ? {} : { program }) }
const world = { leads, email, password }
const client = new Client()
let started: Started | null = null
let loaded: Loaded | null = null
let rates: Rates | null = null
try {
  if (asked.includes('start')) started = await startUp(wish)
  if (values.memory) loaded = await memory(client, wish, { world, requests: 100_000 })
  if (asked.includes('group')) rates = await groupCommit(client, { ...wish, world, rounds, seconds })
} finally {
  client.stop()
}

if (rows.length > 0) say(`\n${table(rows)}`)
if (started) say(`\n${startedTable(started, loaded)}`)
if (rates) say(`\n${ratesTable(rates)}`)
if (rows.length > 0 && (values.all || values.baseline)) writeFileSync(path('cost.svg'), draw(rows))
if (values.baseline) {
  const baseline = { date: new Date().toISOString(), machine: machine(), rows, started, loaded, rates }
  writeFileSync(path('baseline.json'), `${JSON.stringify(baseline, null, 2)}\n`)
}
