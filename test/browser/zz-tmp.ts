// Temporary look.
import { listeningServer } from '../support/listening.ts'
import * as c from './chromium.ts'
const server = await listeningServer()
const launch = (c as any).openBrowser ?? (c as any).launch ?? Object.values(c).find((v) => typeof v === 'function')
const browser = await (launch as any)()
const page = await browser.newPage()
const t0 = performance.now()
const at = () => Math.round(performance.now() - t0)
page.on('console', (m: any) => console.log(at(), 'console', m.type(), m.text().slice(0, 200)))
page.on('pageerror', (m: any) => console.log(at(), 'pageerror', String(m).slice(0, 300)))
page.on('response', (r: any) => console.log(at(), r.status(), r.url().slice(-60)))
page.on('requestfailed', (r: any) => console.log(at(), 'failed', r.url().slice(-60), r.failure()?.errorText))
try {
  await page.goto(`${server.url}/api/admin/documentation`, { timeout: 90_000 })
  console.log(at(), 'loaded')
  await page.locator('.opblock-tag').first().waitFor({ timeout: 90_000 })
  console.log(at(), 'shown')
} catch (e) { console.log(String(e).slice(0, 200)) }
await browser.close()
await server.close()
process.exit(0)
