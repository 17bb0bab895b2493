// `npm run demo:sales`: fills a running server with the sales data set and prints the result.
import { parseArgs } from 'node:util'
import { SingleBar } from 'cli-progress'
import { type Api, Refused, signIn } from './api.ts'
import { besideTheRepository, missingIn, readSales, type Sales } from './data.ts'
import { expectedFigures, pipelineFigures } from './figures.ts'
import { AlreadyLoaded, loadSales } from './load.ts'

const usage =
  'npm run demo:sales -- --url http://127.0.0.1:8000 --email admin@example.com --password … [--data <folder>]'

const say = (text = ''): void => console.log(text)
const number = (value: number): string => value.toLocaleString('en')

/** An error that is printed without its stack. */
class Stop extends Error {}

function settings(): { url: string; email: string; password: string; data: string } {
  const text = { type: 'string' } as const
  try {
    const { values } = parseArgs({ options: { url: text, email: text, password: text, data: text } })
    const { url, email, password, data = besideTheRepository } = values
    if (url && email && password) return { url, email, password, data }
  } catch (cause) {
    throw new Stop(`${cause instanceof Error ? cause.message : cause}\nUsage: ${usage}`)
  }
  throw new Stop(`--url, --email and --password are needed.\nUsage: ${usage}`)
}

function dataIn(folder: string): Sales {
  const missing = missingIn(folder)
  if (missing.length > 0)
    throw new Stop(
      `The data set is not complete in ${folder}: ${missing.join(', ')} not found. Name its folder with --data.`,
    )
  return readSales(folder)
}

async function connect(target: { url: string; email: string; password: string }): Promise<Api> {
  try {
    return await signIn(target)
  } catch (cause) {
    if (cause instanceof Refused) throw new Stop(`Signing in failed: ${cause.message}`)
    throw new Stop(
      `Nothing answers at ${target.url}; start the server first. (${cause instanceof Error ? cause.message : cause})`,
    )
  }
}

/** Shows the progress as a bar per step, or as a line per step without a terminal. */
function progress(): { report: (step: string, done: number, of: number) => void; stop: () => void } {
  let bar: SingleBar | undefined
  let current = ''
  const stop = () => bar?.stop()
  const report = (step: string, done: number, of: number): void => {
    if (step !== current) {
      stop()
      current = step
      bar = new SingleBar({
        format: '{step} {bar} {value}/{total}  {duration_formatted}',
        hideCursor: true,
        noTTYOutput: true,
        notTTYSchedule: 10_000,
      })
      bar.start(of, done, { step: step.padEnd(14) })
    } else bar?.update(done)
  }
  return { report, stop }
}

async function main(): Promise<void> {
  const target = settings()
  const sales = dataIn(target.data)
  const api = await connect(target)
  const started = Date.now()
  const { report, stop } = progress()
  const loaded = await loadSales(api, sales, report).finally(stop)
  const seconds = (Date.now() - started) / 1000

  say()
  say(
    `Loaded in ${seconds.toFixed(0)} s: ${Object.entries(loaded.counts)
      .map(([name, count]) => `${number(count)} ${name}`)
      .join(', ')}.`,
  )
  for (const [what, count] of sales.repairs)
    say(`Repaired: ${what}, ${number(count)} ${count === 1 ? 'time' : 'times'}.`)
  const orphans = sales.opportunities.filter(({ account }) => account === null).length
  say(
    `Mapped: accounts to organizations with one contact each (${number(orphans)} opportunities name no account and have no contact),`,
  )
  say(
    '        regional offices to groups, agents and managers to users with the role Sales, opportunities to leads with one product line.',
  )
  say('        sector, employees and revenue of an account to custom attributes of organizations.')
  say('Not mapped: year and parent of an account.')
  say()
  const expected: Record<string, { leads: number; value: number }> = expectedFigures(sales)
  let isRight = true
  for (const { code, name, leads, value } of await pipelineFigures(api, loaded.pipelineId)) {
    const fits = expected[code]?.leads === leads && expected[code]?.value === value
    isRight &&= fits
    say(
      `${name.padEnd(12)} ${number(leads).padStart(6)} leads ${number(value).padStart(14)}${fits ? '' : '   differs from the files'}`,
    )
  }
  if (!isRight) throw new Stop('The server does not hold what the files say.')
}

main().catch((cause: unknown) => {
  if (!(cause instanceof Stop || cause instanceof AlreadyLoaded || cause instanceof Refused)) throw cause
  console.error(cause.message)
  process.exitCode = 1
})
