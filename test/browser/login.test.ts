// Signing in, signing out and resetting a password in a browser. The pages work with their content
// security policy and request nothing from other hosts.
import type { AddressInfo } from 'node:net'
import type { Page } from 'playwright-core'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { adminPassword } from '../support/app.ts'
import { listeningServer } from '../support/listening.ts'
import { linkIn, openMailbox } from '../support/mailbox.ts'
import { useOne } from '../support/using.ts'
import { browserTests, openBrowser, patienceMs, type Watched, watchedContext } from './chromium.ts'

const { describe } = browserTests

const fresh = 'quite another password'
let watched: Watched
let page: Page

const mailbox = useOne(openMailbox)
const browser = useOne(openBrowser)
const server = useOne(() => listeningServer({ smtpUrl: mailbox.url, worker: true }))
beforeEach(async () => {
  watched = await watchedContext(browser, server.url)
  page = await watched.context.newPage()
})
afterEach(() => watched.context.close())

const text = (selector: string) => page.locator(selector).textContent()

async function signIn(password: string): Promise<void> {
  await page.fill('#email', 'admin@example.com')
  await page.fill('#password', password)
  await page.keyboard.press('Enter')
}

/** Sends a request from a script in the page. */
const call = (method: string, path: string, body?: object, value?: string) =>
  page.evaluate(
    async ([method = '', path = '', body, value]) => {
      const cookie = /XSRF-TOKEN=([^;]*)/.exec(document.cookie)?.[1] ?? ''
      const headers = {
        accept: 'application/json',
        'content-type': 'application/json',
        'x-xsrf-token': value ?? cookie,
      }
      const answer = await fetch(path, { method, headers, ...(body && { body }) })
      return { status: answer.status, body: await answer.json(), cookies: document.cookie }
    },
    [method, `/api/admin${path}`, body && JSON.stringify(body), value],
  )

/** Chromium logs refused requests to the console, so these messages are ignored. */
const complaints = () => watched.complaints.filter((each) => !/status of (401|403|422)/.test(each))

describe('the login page of an installation with https', { timeout: patienceMs }, () => {
  it('signs in with cookies that no other host can plant, and out again', async () => {
    // A browser accepts secure cookies from loopback without https.
    const secure = await listeningServer({ appUrl: 'https://crm.example' })
    const { port } = secure.app.http.server.address() as AddressInfo
    const url = `http://127.0.0.1:${port}`
    const own = await watchedContext(browser, url)
    try {
      page = await own.context.newPage()
      await page.goto(`${url}/api/admin/sources`)
      await signIn(adminPassword)
      await page.locator('#on').waitFor()
      const kept = (await own.context.cookies()).map(({ name, secure }) => [name, secure])
      expect(kept.sort()).toEqual([
        ['__Host-XSRF-TOKEN', true],
        ['__Host-accord_device', true],
        ['__Host-accord_session', true],
      ])
      await page.click('#in button')
      await expect.poll(() => text('[role=status]')).toBe('Signed out.')
      expect((await own.context.cookies()).map(({ name }) => name)).toEqual(['__Host-accord_device'])
    } finally {
      await own.context.close()
      await secure.close()
    }
  })
})

describe('the login page', { timeout: patienceMs }, () => {
  it('signs in, lets scripts of the page read and write, goes on to the requested page, and signs out', async () => {
    await page.goto(`${server.url}/api/admin/sources?per_page=2`)
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('email')
    await signIn('not the password')
    await expect.poll(() => text('[role=alert]')).toContain('do not match')
    await signIn(adminPassword)
    await page.locator('#on').waitFor()
    expect(await text('#who')).toBe('Signed in as Example Admin (admin@example.com).')
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('on')

    const read = await call('GET', '/session')
    expect([read.status, read.body.data.id]).toEqual([200, 1])
    expect(read.cookies).toMatch(/^XSRF-TOKEN=[0-9a-f]{64}$/)
    expect((await call('POST', '/sources', { name: 'From a page' }, 'forged')).status).toBe(403)
    expect((await call('POST', '/sources', { name: 'From a page' })).status).toBe(201)

    await page.click('#on')
    await page.waitForURL(`${server.url}/api/admin/sources?per_page=2`)
    expect(await text('body')).toContain('"per_page":2')
    await page.goto(`${server.url}/api/admin/documentation`)
    expect((await call('DELETE', '/session')).status).toBe(200)
    await page.goto(`${server.url}/api/admin/sources`)
    await page.locator('#login').waitFor()
    expect([watched.elsewhere, complaints()]).toEqual([[], []])
  })

  it('goes on to the documentation when it was opened by its own address', async () => {
    await page.goto(`${server.url}/api/admin/session`)
    await signIn(adminPassword)
    await page.locator('#on').waitFor()
    expect(await text('#on')).toBe('Continue to the documentation')
    await page.click('#on')
    await page.waitForURL(`${server.url}/api/admin/documentation`)
    expect(complaints()).toEqual([])
  })

  it('has a way out beside the way on', async () => {
    await page.goto(`${server.url}/api/admin/leads`)
    await signIn(adminPassword)
    await page.click('#in button')
    await expect.poll(() => text('[role=status]')).toBe('Signed out.')
    expect((await call('GET', '/session')).status).toBe(401)
    expect(complaints()).toEqual([])
  })

  it('is believed of no page of another host, wherever its cookies go', async () => {
    await page.goto(`${server.url}/api/admin/leads`)
    await signIn(adminPassword)
    await page.locator('#on').waitFor()
    const cookie = (await watched.context.cookies()).map(({ name, value }) => `${name}=${value}`).join('; ')
    const status = async (origin: string) =>
      (await fetch(`${server.url}/api/admin/session`, { headers: { accept: 'application/json', cookie, origin } }))
        .status
    expect([await status(server.url), await status('https://evil.example')]).toEqual([200, 401])
  })

  it('says plainly that it needs script where that is off, and shows nothing that could send a password', async () => {
    const context = await browser.newContext({ javaScriptEnabled: false })
    const plain = await context.newPage()
    for (const path of ['leads', 'reset-password']) {
      await plain.goto(`${server.url}/api/admin/${path}`)
      expect(await plain.locator('noscript p').textContent()).toContain('needs JavaScript')
      expect(await plain.locator('noscript p').isVisible()).toBe(true)
      expect(await plain.locator('input:visible, button:visible').count()).toBe(0)
    }
    await context.close()
  })

  it.each(['light', 'dark'] as const)('can be read in the %s', async (colorScheme) => {
    await page.emulateMedia({ colorScheme })
    for (const path of ['leads', 'reset-password#token=a&email=b@example.com']) {
      await page.goto(`${server.url}/api/admin/${path}`)
      const ratio = await page
        .locator('button:visible')
        .first()
        .evaluate((button) => {
          const shine = (color: string): number => {
            const [r = 0, g = 0, b = 0] = (color.match(/[\d.]+/g) ?? []).map((part) => (Number(part) / 255) ** 2.2)
            return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05
          }
          const { color, backgroundColor } = getComputedStyle(button)
          const [one, other] = [shine(color), shine(backgroundColor)]
          return Math.max(one, other) / Math.min(one, other)
        })
      expect(ratio).toBeGreaterThan(4.5)
      const labels = await page.locator('label:visible').count()
      expect(await page.locator('input:visible').count()).toBe(labels)
    }
    expect(complaints()).toEqual([])
  })
})

describe('a forgotten password', { timeout: patienceMs }, () => {
  it('is replaced by the link of the mail, which then is good no more', async () => {
    await page.goto(`${server.url}/api/admin/leads`)
    await page.fill('#email', 'admin@example.com')
    await page.click('#to-forgot')
    await page.keyboard.press('Enter')
    await expect.poll(() => text('[role=status]')).toContain('an e-mail with a link is on its way')

    let link: URL | undefined
    await expect
      .poll(
        async () => {
          const [mail] = await mailbox.take()
          if (mail) link = linkIn(mail)
          return link?.pathname
        },
        { timeout: patienceMs / 2 },
      )
      .toBe('/api/admin/reset-password')
    const address = `${server.url}${link?.pathname}${link?.hash}`

    await page.goto(address)
    expect(page.url()).toBe(`${server.url}/api/admin/reset-password`)
    expect(await text('#who')).toBe('admin@example.com')
    await page.fill('#password', fresh)
    await page.fill('#again', 'something else')
    await page.keyboard.press('Enter')
    await expect.poll(() => text('[role=alert]')).toBe('Must repeat the password.')
    await page.fill('#again', fresh)
    await page.keyboard.press('Enter')
    await expect.poll(() => text('[role=status]')).toBe('Password set. Sign in with it.')

    await page.click('#on')
    await page.locator('#login').waitFor()
    await signIn(adminPassword)
    await expect.poll(() => text('[role=alert]')).toContain('do not match')
    await signIn(fresh)
    await page.locator('#on').waitFor()

    const again = await watched.context.newPage()
    await again.goto(address)
    await again.fill('#password', fresh)
    await again.fill('#again', fresh)
    await again.keyboard.press('Enter')
    await expect.poll(() => again.locator('[role=alert]').textContent()).toContain('expired')
    await again.goto(`${server.url}/api/admin/reset-password#nothing`)
    await again.reload()
    expect(await again.locator('[role=alert]').textContent()).toContain('Open this page from the link')
    expect([watched.elsewhere, complaints()]).toEqual([[], []])
  })
})
