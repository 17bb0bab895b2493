// Measures the documentation page in Chromium: the time until the first tag is visible, the times
// to open an operation and to search, and the compressed size. The CPU is slowed down four times.
// For comparison, prints four times the CPU time on the full CPU, which other programs hardly
// affect. Run: npx tsx test/bench/documentation.ts [<URL of a running server>]
import type { CDPSession, Page } from 'playwright-core'
import { openBrowser } from '../browser/chromium.ts'
import { searchTimes } from '../browser/search-times.ts'
import { listeningServer } from '../support/listening.ts'

/** The factor by which the CPU is slowed down. */
const slowdown = 4
/** The operations to open: a short one, a form and the longest list. */
const opened = ['Sources/getSource', 'Leads/createLead', 'Leads/listLeads']
const rounds = Number(process.env.ROUNDS ?? 5)

/** Resolves after the element that matches the selector has been painted. */
const painted = (selector: string): string => `new Promise((resolve) => {
  const look = () => document.querySelector(${JSON.stringify(selector)})?.getBoundingClientRect().height > 0
    ? requestAnimationFrame(() => setTimeout(() => resolve(performance.now())))
    : requestAnimationFrame(look)
  look()
})`

const median = (values: number[]): number => values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

/** Returns the CPU time of the main thread of the page in milliseconds. */
async function cpuOf(cdp: CDPSession): Promise<number> {
  const { metrics } = await cdp.send('Performance.getMetrics')
  return (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? Number.NaN) * 1000
}

interface Round {
  page: Page
  cdp: CDPSession
  note: (name: string, ms: number) => void
}

/** Opens the page with an empty cache, then some of its operations. */
async function measure(url: string, { page, cdp, note }: Round): Promise<void> {
  await page.addInitScript(
    `window.firstTag = ${painted('#sidebar summary')}; window.reference = ${painted('.opblock-tag')}`,
  )
  await page.goto(url)
  note('first tag in the sidebar', (await page.evaluate('window.firstTag')) as number)
  note('first tag of the reference', (await page.evaluate('window.reference')) as number)
  note('first tag of the reference, CPU', await cpuOf(cdp))
  for (const operation of opened) {
    const [tag] = operation.split('/')
    const id = `operations-${operation.replace('/', '-')}`
    // A tag that is clicked before Swagger UI has started opens after the start.
    if ((await page.locator(`#${id}`).count()) === 0)
      await page.locator(`.opblock-tag[data-tag="${tag}"] button`).click()
    await page.locator(`#${id} .opblock-summary-control`).waitFor()
    await page.waitForLoadState('networkidle')
    await page.waitForTimeout(1000)
    const cpu = await cpuOf(cdp)
    const ms = await page.evaluate(`(async () => {
      const began = performance.now()
      document.querySelector('#${id} .opblock-summary-control').click()
      return (await ${painted(`#${id} .errors`)}) - began
    })()`)
    note(`open ${operation}`, ms as number)
    note(`open ${operation}, CPU`, (await cpuOf(cdp)) - cpu)
  }
  for (const ms of await searchTimes(page)) note('search', ms)
}

const given = process.argv[2]
const server = given === undefined ? await listeningServer() : undefined
const url = `${given ?? server?.url}/api/admin/documentation`
const browser = await openBrowser()
const times = new Map<string, number[]>()
let bytes = 0
try {
  await fetch(url)
  for (let round = 0; round < 2 * rounds; round++) {
    const isSlow = round % 2 === 0
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 } })
    const page = await context.newPage()
    page.setDefaultTimeout(200_000)
    const cdp = await context.newCDPSession(page)
    await cdp.send('Performance.enable', { timeDomain: 'threadTicks' })
    await cdp.send('Network.enable')
    if (isSlow) await cdp.send('Emulation.setCPUThrottlingRate', { rate: slowdown })
    bytes = 0
    cdp.on('Network.loadingFinished', ({ encodedDataLength }) => {
      bytes += encodedDataLength
    })
    const note = (name: string, ms: number) => {
      // Elapsed times are recorded on the slow CPU, and CPU times on the full CPU.
      if (name.endsWith('CPU') === isSlow) return
      times.set(name, [...(times.get(name) ?? []), isSlow ? ms : ms * slowdown])
    }
    await measure(url, { page, cdp, note })
    await context.close()
  }
} finally {
  await browser.close()
  await server?.close()
}
for (const [name, all] of times) console.log(`${name}: ${Math.round(median(all))} ms (median of ${all.length})`)
console.log(`loaded: ${Math.round(bytes / 1024)} KB compressed, with the opened operations`)
