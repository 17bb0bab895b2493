// Starts headless Chromium with pages that can reach only one server. Requests to other hosts are
// refused and recorded.
import { existsSync } from 'node:fs'
import { type Browser, type BrowserContext, chromium } from 'playwright-core'

/**
 * A long timeout: without a graphics card, rendering takes seconds, and other tests run
 * concurrently.
 */
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
  /** Errors of scripts and of the console, including violations of the content security policy. */
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
