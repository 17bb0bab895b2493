// The system clock jumps ten years ahead or back while a server is running. The server and its
// scheduler must keep working. The jump is a few seconds before the end of a minute, when the
// scheduler runs.
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { Sqlite } from '../../db/sqlite/driver.ts'
import { accordServing } from '../support/accord.ts'
import { workingFolder } from '../support/installed.ts'
import { until } from '../support/until.ts'

const tenYearsMs = 3_653 * 24 * 60 * 60 * 1000
/**
 * The time before the end of a minute in which the server starts, the requests run and the clock
 * jumps. If a machine takes longer, the scheduler runs a minute later.
 */
const leadMs = 12_000
const latestMs = 100_000
const shifted = new URL('../support/clock.shifted.mjs', import.meta.url).href

/** Returns the end of the scheduler's lock, which is a minute and a half after its last run. */
function lockedUntil(folder: string): string {
  const database = new Sqlite(join(folder, 'data', 'accord.db'), { readonly: true })
  try {
    const found = database.prepare("select locked_until from locks where name = 'scheduler'").pluck().get()
    return typeof found === 'string' ? found : ''
  } finally {
    database.close()
  }
}

describe('a clock that jumps', () => {
  it.concurrent.each([
    ['ahead', tenYearsMs],
    ['back', -tenYearsMs],
  ])('ten years %s stops neither replies nor the scheduler', { timeout: 2 * latestMs }, async (_name, byMs) => {
    const folder = await workingFolder()
    const clock = join(folder, 'clock')
    const serving = await accordServing(folder, 'serve', {
      NODE_OPTIONS: `--import ${shifted}`,
      ACCORD_TEST_CLOCK_LEAD_MS: String(leadMs),
      ACCORD_TEST_CLOCK_FILE: clock,
    })
    try {
      const answers = async (): Promise<number> =>
        (await fetch(`${serving.url}/healthz`, { signal: AbortSignal.timeout(30_000) })).status
      await until(() => lockedUntil(folder) !== '')
      const before = Date.parse(lockedUntil(folder))
      // Waits until the work after the start is done.
      expect(await answers()).toBe(200)
      await new Promise((resolve) => setTimeout(resolve, 4_000))

      writeFileSync(clock, String(byMs))
      process.kill(serving.pid, 'SIGUSR2')
      const years = (): number => (Date.parse(lockedUntil(folder)) - before) / tenYearsMs
      let end = performance.now() + latestMs
      let hasLooked = false
      while (performance.now() < end) {
        // A blocked server would not respond.
        expect(await answers()).toBe(200)
        await new Promise((resolve) => setTimeout(resolve, 10))
        if (hasLooked || Math.round(years()) !== Math.sign(byMs)) continue
        hasLooked = true
        end = performance.now() + 3_000
      }
      expect(hasLooked).toBe(true)
    } finally {
      await serving.stop('SIGKILL')
      rmSync(folder, { recursive: true, force: true })
    }
  })
})
