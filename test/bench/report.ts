// Formats the results of a run as a table and as a JSON file, with one row per kind of request and
// number of leads.
import { cpus } from 'node:os'
import { Sqlite } from '../../db/sqlite/driver.ts'
import type { Rates } from './group.ts'
import type { Kind } from './requests.ts'
import type { Name } from './servers.ts'
import type { Loaded, Started } from './start.ts'

/** The medians over the rounds, for one server and one kind of request. */
export interface Cost {
  /** The CPU time per request in milliseconds. */
  cpuMs: number
  perSecond: number
  p50: number
  p99: number
}

export interface Row {
  leads: number
  kind: Kind
  rounds: number
  /** The number of refused requests. With many of them, the row is not reliable. */
  refused: number
  costs: Record<Name, Cost>
  /** The ratio of the CPU times. */
  ratio: number
}

export const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((one, other) => one - other)
  const middle = Math.floor(sorted.length / 2)
  return sorted.length % 2 === 1 ? (sorted[middle] ?? 0) : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2
}

const figure = (value: number): string =>
  value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(3)

const head = [
  'N',
  'request',
  'ratio',
  'CPU ms accord',
  'limit',
  'req/s accord',
  'limit',
  'p50 accord',
  'limit',
  'p99 accord',
  'limit',
]

export function table(rows: readonly Row[]): string {
  const lines = rows.map(({ leads, kind, ratio, refused, costs: { accord, limit } }) => [
    leads.toLocaleString('en-US'),
    refused > 0 ? `${kind} (${refused} × 503)` : kind,
    ratio.toFixed(2),
    ...(['cpuMs', 'perSecond', 'p50', 'p99'] as const).flatMap((key) => [figure(accord[key]), figure(limit[key])]),
  ])
  const widths = head.map((name, column) => Math.max(name.length, ...lines.map((line) => line[column]?.length ?? 0)))
  const laid = (line: readonly string[]): string =>
    line
      .map((text, column) => (column === 1 ? text.padEnd(widths[column] ?? 0) : text.padStart(widths[column] ?? 0)))
      .join('  ')
  return [laid(head), ...lines.map(laid)].join('\n')
}

export function machine() {
  const [first] = cpus()
  const database = new Sqlite(':memory:')
  const sqlite = database.prepare('select sqlite_version()').pluck().get() as string
  database.close()
  return { cpu: first?.model ?? 'unknown', cores: cpus().length, node: process.version, sqlite }
}

export function startedTable(started: Started, loaded: Loaded | null): string {
  const lines = [
    `start to the first answer: /healthz ${started.health.toFixed(0)} ms, one lead ${started.leads.toFixed(0)} ms`,
    `memory: idle ${started.idleMb.toFixed(0)} MB${loaded ? `, after the requests ${loaded.loadedMb.toFixed(0)} MB (at most ${loaded.maxMb.toFixed(0)} MB)` : ''}`,
  ]
  return lines.join('\n')
}

export function ratesTable({ accord64, alone64, limit64, accord1, together, apart, commits, ...slow }: Rates): string {
  const lines = [
    ['accord, 64 clients', accord64],
    ['accord, 64 clients, a commit for each', alone64],
    ['limit, 64 clients, a commit for each', limit64],
    ['accord, 1 client, a commit for each', accord1],
    ['the database alone, 64 in a commit', together],
    ['the database alone, a commit for each', apart],
    ['commits of one row, nothing else', commits],
  ] as const
  const shown = lines.map(([name, rate]) => `  ${name.padEnd(38)} ${rate.toFixed(0).padStart(6)}`)
  const ratios = [
    ['accord at 64 / with a commit for each', accord64 / alone64],
    ['at 64 / at 1', accord64 / accord1],
    ['at 64 / limit at 64', accord64 / limit64],
    ['the database alone', together / apart],
  ] as const
  const gain = ratios.map(([name, ratio]) => `${name} ${ratio.toFixed(2)}`).join('; ')
  const p99 = `p99 with 64 clients: accord ${slow.accordP99.toFixed(0)} ms, limit ${slow.limitP99.toFixed(0)} ms`
  return ['creates a second, all of them on the disk', ...shown, gain, p99].join('\n')
}
