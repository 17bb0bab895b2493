// Debian's Chromium without a window, with a page that may reach one server only: requests to other
// hosts are refused and recorded.
import { existsSync } from 'node:fs'
import { type Browser, type BrowserContext, chromium } from 'playwright-core'

/** Without a graphics card a page takes seconds to draw, and other tests run beside it. */
export const patienceMs = 240_000

export async function openBrowser(): Promise<Browser> {
  const executablePath = process.env.CHROMIUM_PATH ?? '/usr/bin/chromium'
  if (!existsSync(executablePath)) {
    throw new Error(
      `The browser tests need Chromium, and there is none at ${executablePath}. Run: apt-get install chromium, or set CHROMIUM_PATH.`,
    )
  }
  const switches = ['no-sandbox', 'disable-gpu', 'disable-quic', 'no-first-run']
  const quiet = ['disable-background-networking', 'disable-component-update', 'disable-sync']
  return chromium.launch({ executablePath, args: [...switches, ...quiet].map((name) => `--${name}`) })
}

export interface Watched {
  context: BrowserContext
  /** URLs of other hosts that a page requested. */
  elsewhere: string[]
  /** Errors of the console and of scripts, violations of the content security policy included. */
  complaints: string[]
}

export async function watchedContext(browser: Browser, url: string): Promise<Watched> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } })
  context.setDefaultTimeout(100_000)
  const elsewhere: string[] = []
  const complaints: string[] = []
  await context.route('**/*', (route) => {
    const asked = route.request().url()
    if (asked.startsWith(`${url}/`) || asked.startsWith('data:')) return route.continue()
    elsewhere.push(asked)
    return route.abort()
  })
  context.on('console', (message) => {
    if (message.type() === 'error' || message.text().includes('Content Security Policy'))
      complaints.push(message.text())
  })
  context.on('weberror', (error) => complaints.push(String(error.error())))
  return { context, elsewhere, complaints }
}
