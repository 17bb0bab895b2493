// Summarizes a CPU profile: `npx tsx test/bench/hot.ts <file.cpuprofile>` prints the functions with
// the most self time, and sums by file and package. `npm run bench -- --profile <folder>` writes
// profiles.
import { readFileSync } from 'node:fs'

interface Profile {
  nodes: {
    id: number
    callFrame: { functionName: string; url: string; lineNumber: number }
  }[]
  samples: number[]
  timeDeltas: number[]
}

/** Returns the name of a package, the path of a file of this project, or a label as `(native)`. */
function placeOf(url: string, name: string): string {
  const [, scoped] = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url) ?? []
  if (scoped !== undefined) return scoped
  if (url === '') return name.startsWith('(') ? name : '(native)'
  return url.replace(/^file:\/\//, '').replace(/^.*\/dist\//, '')
}

function sumBy(entries: readonly [string, number][]): [string, number][] {
  const sums = new Map<string, number>()
  for (const [key, ms] of entries) sums.set(key, (sums.get(key) ?? 0) + ms)
  return [...sums].sort(([, one], [, other]) => other - one)
}

const file = process.argv[2]
if (file === undefined) throw new Error('Say which: npx tsx test/bench/hot.ts <file.cpuprofile>')
const { nodes, samples, timeDeltas } = JSON.parse(readFileSync(file, 'utf8')) as Profile
const own = new Map<number, number>()
for (const [index, id] of samples.entries()) own.set(id, (own.get(id) ?? 0) + (timeDeltas[index] ?? 0) / 1000)
const spent = nodes.map(({ id, callFrame: { functionName, url, lineNumber } }) => {
  const name = functionName || '(anonymous)'
  const place = placeOf(url, name)
  return { name: `${name}  ${place}${url === '' ? '' : `:${lineNumber + 1}`}`, place, ms: own.get(id) ?? 0 }
})
const busy = spent.filter(({ place }) => place !== '(idle)' && place !== '(program)')
const total = busy.reduce((sum, { ms }) => sum + ms, 0)

function print(title: string, rows: readonly [string, number][]): void {
  console.log(`\n${title}`)
  for (const [name, ms] of rows)
    console.log(`${ms.toFixed(0).padStart(8)} ms ${((100 * ms) / total).toFixed(1).padStart(5)} %  ${name}`)
}

console.log(`${total.toFixed(0)} ms of work`)
print('Functions, their own time', sumBy(busy.map(({ name, ms }) => [name, ms])).slice(0, 40))
print('Files and packages', sumBy(busy.map(({ place, ms }) => [place, ms])).slice(0, 30))
