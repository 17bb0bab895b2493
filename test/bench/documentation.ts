// Measures the documentation page in Chromium on a CPU slowed down four times: the time until the
// first tag is visible, the time to open an operation, and the compressed size of the page.
// Run: npx tsx test/bench/documentation.ts [<URL of a running server>]
import type { CDPSession, Page } from 'playwright-core'
import { openBrowser } from '../browser/chromium.ts'
import { listeningServer } from '../support/listening.ts'

/** The slowdown of the CPU, as in the performance panel of the developer tools. */
const slowdown = 4
/** The operations to open, as `<tag>/<operationId>`: a short one, a form and the longest list. */
const opened = ['Sources/getSource', 'Leads/createLead', 'Leads/listLeads']
const rounds = Number(process.env.ROUNDS ?? 5)

/** Records when the first element that matches the selector has been painted. */
const paintedAt = (selector: string): string => `
  window.__painted = new Promise((resolve) => {
    const look = () => {
      const found = document.querySelector(${JSON.stringify(selector)})
      if (found && found.getBoundingClientRect().height > 0)
        requestAnimationFrame(() => setTimeout(() => resolve(performance.now())))
      else requestAnimationFrame(look)
    }
    look()
  })`

const median = (values: number[]): number => values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

async function slow(page: Page): Promise<CDPSession> {
  const cdp = await page.context().newCDPSession(page)
  await cdp.send('Emulation.setCPUThrottlingRate', { rate: slowdown })
  await cdp.send('Network.enable')
  return cdp
}

/** Opens the page with an empty cache. Returns milliseconds until the selector is painted. */
async function timeToShow(page: Page, url: string, selector: string): Promise<number> {
  await page.addInitScript(paintedAt(selector))
  await page.goto(url)
  return (await page.evaluate('window.__painted')) as number
}

/** Clicks an operation's summary. Returns milliseconds until its responses are painted. */
async function timeToOpen(page: Page, operation: string): Promise<number> {
  const id = `operations-${operation.replace('/', '-')}`
  const tag = operation.split('/')[0]
  if ((await page.locator(`#${id}`).count()) === 0) await page.locator(`.opblock-tag[data-tag="${tag}"]`).click()
  await page.locator(`#${id} .opblock-summary-control`).first().waitFor({ timeout: 60_000 })
  await page.waitForTimeout(1500)
  return (await page.evaluate(
    `new Promise((resolve) => {
      const began = performance.now()
      const block = document.getElementById(${JSON.stringify(id)})
      block.querySelector('.opblock-summary-control').click()
      const look = () => block.querySelector('.responses-wrapper .response, .responses-wrapper td')
        ? requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - began)))
        : requestAnimationFrame(look)
      look()
    })`,
  )) as number
}

const given = process.argv[2]
const server = given === undefined ? await listeningServer() : undefined
const url = `${given ?? server?.url}/api/admin/documentation`
const browser = await openBrowser()
const times = new Map<string, number[]>()
const note = (name: string, ms: number) => times.set(name, [...(times.get(name) ?? []), ms])
let bytes = 0
try {
  for (let round = 0; round < rounds; round++)
    for (const [name, selector] of [
      ['first tag in the page', '.opblock-tag'],
      ['first tag in the sidebar', '#sidebar summary'],
    ] as const) {
      if (given !== undefined && selector.startsWith('#sidebar')) continue
      const context = await browser.newContext({ viewport: { width: 1280, height: 900 } })
      const page = await context.newPage()
      page.setDefaultTimeout(100_000)
      const cdp = await slow(page)
      bytes = 0
      cdp.on('Network.loadingFinished', ({ encodedDataLength }) => {
        bytes += encodedDataLength
      })
      note(name, await timeToShow(page, url, selector))
      if (selector === '.opblock-tag')
        for (const operation of opened) note(`open ${operation}`, await timeToOpen(page, operation))
      await context.close()
    }
} finally {
  await browser.close()
  await server?.close()
}
for (const [name, all] of times) console.log(`${name}: ${Math.round(median(all))} ms (median of ${all.length})`)
console.log(`loaded: ${Math.round(bytes / 1024)} KB compressed, with the opened operations`)
