// Starts headless Chromium with pages that can reach only one server. Requests to other hosts are
// refused and recorded.
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { findInstalledBrowser, needing } from '../support/programs.ts'

/** `describe` and `it` of the tests that need a browser. */
export const browserTests = needing('chromium')

/**
 * A long timeout: without a graphics card, rendering takes seconds, and other tests run
 * concurrently.
 */
export const patienceMs = 240_000

export async function openBrowser(): Promise<Browser> {
  const installed = findInstalledBrowser()
  const { executablePath, env } = installed === null ? await unpackBrowser() : { executablePath: installed, env: {} }
  const switches = ['no-sandbox', 'disable-gpu', 'disable-quic', 'no-first-run']
  const quiet = ['disable-background-networking', 'disable-component-update', 'disable-sync']
  const args = [...switches, ...quiet].map((name) => `--${name}`)
  return chromium.launch({ executablePath, args, env: { ...(process.env as Record<string, string>), ...env } })
}

/**
 * Unpacks the development dependency @sparticuz/chromium with its libraries and fonts once, and
 * returns the path of the program and the variables that it needs.
 */
async function unpackBrowser(): Promise<{ executablePath: string; env: Record<string, string> }> {
  const cache = fileURLToPath(new URL('../../node_modules/.cache/', import.meta.url))
  const folder = join(cache, 'accord-chromium')
  if (!existsSync(folder)) {
    const unpacked = await unpackInto(cache)
    // The file of the package names another folder, and Chromium ends when it finds no font.
    writeFileSync(
      join(unpacked, 'fonts', 'fonts.conf'),
      `<fontconfig><dir>${join(folder, 'fonts')}</dir><cachedir>${join(folder, 'fonts-cache')}</cachedir></fontconfig>`,
    )
    try {
      renameSync(unpacked, folder)
    } catch (error) {
      // Another thread was faster.
      rmSync(unpacked, { recursive: true, force: true })
      if (!existsSync(folder)) throw error
    }
  }
  const env = { LD_LIBRARY_PATH: join(folder, 'al2023', 'lib'), FONTCONFIG_PATH: join(folder, 'fonts') }
  return { executablePath: join(folder, 'chromium'), env }
}

/**
 * The package unpacks into the folder of TMPDIR, and its libraries only where it sees AWS Lambda.
 */
async function unpackInto(parent: string): Promise<string> {
  mkdirSync(parent, { recursive: true })
  const folder = mkdtempSync(join(parent, 'accord-chromium-'))
  const script = `import chromium from '@sparticuz/chromium'; await chromium.executablePath()`
  const env = { ...process.env, TMPDIR: folder, AWS_EXECUTION_ENV: 'AWS_Lambda_nodejs22.x' }
  await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], { env, cwd: parent })
  return folder
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

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** Returns the violations of WCAG 2.1 A and AA that axe finds, with the first element of each. */
export async function violationsIn(page: Page): Promise<string[]> {
  // Playwright's evaluate bypasses the content security policy.
  const found = await page.evaluate(`${axe};
    axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'], resultTypes: ['violations'] })
      .then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes[0].html.slice(0, 200)))`)
  return found as string[]
}
