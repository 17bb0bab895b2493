// The clock of the machine jumps by ten years, ahead and back, under a server that runs: it goes on answering, and its scheduler goes on.
// The jump comes a few seconds before a minute ends, when the scheduler looks.
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterEach, describe, expect, it } from 'vitest'
import { accordServing, type Serving } from '../support/accord.ts'
import { workingFolder } from '../support/installed.ts'
import { until } from '../support/until.ts'

const tenYearsMs = 3_653 * 24 * 60 * 60 * 1000
/** To start, to be asked and to jump, before the minute is over. */
const leadMs = 20_000
const shifted = new URL('../support/clock.shifted.mjs', import.meta.url).href

let serving: Serving | undefined
let folder = ''
afterEach(async () => {
  await serving?.stop('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

/** Until when the scheduler holds its lock: a minute and a half after its last look. */
function lockedUntil(): string {
  const database = new Sqlite(join(folder, 'data', 'accord.db'), { readonly: true })
  try {
    const found = database.prepare("select locked_until from locks where name = 'scheduler'").pluck().get()
    return typeof found === 'string' ? found : ''
  } finally {
    database.close()
  }
}

describe('a clock that jumps', () => {
  it.each([
    ['ahead', tenYearsMs],
    ['back', -tenYearsMs],
  ])('ten years %s keeps nobody from being answered, nor the scheduler from looking', async (_name, byMs) => {
    folder = await workingFolder()
    const clock = join(folder, 'clock')
    serving = await accordServing(folder, 'serve', {
      NODE_OPTIONS: `--import ${shifted}`,
      ACCORD_CLOCK_LEAD_MS: String(leadMs),
      ACCORD_CLOCK_FILE: clock,
    })
    const { url, pid } = serving
    await until(() => lockedUntil() !== '')
    const before = lockedUntil()
    // What it does once after its start is over.
    expect((await fetch(`${url}/healthz`)).status).toBe(200)
    await new Promise((resolve) => setTimeout(resolve, 4_000))

    writeFileSync(clock, String(byMs))
    process.kill(pid, 'SIGUSR2')
    let longest = 0
    const over = performance.now() + leadMs + 5_000
    while (performance.now() < over) {
      const since = performance.now()
      const { status } = await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(30_000) })
      expect(status).toBe(200)
      longest = Math.max(longest, performance.now() - since)
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    console.log(`clock: after a jump of ${byMs} ms the longest answer of /healthz took ${Math.round(longest)} ms`)
    // 100 ms where nothing else runs; frozen it was for ever.
    expect(longest).toBeLessThan(3_000)
    const years = (Date.parse(lockedUntil()) - Date.parse(before)) / tenYearsMs
    expect(Math.round(years)).toBe(Math.sign(byMs))
  })
})
