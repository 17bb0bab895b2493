// The documentation page in a real browser: it works offline and under its content security policy,
// and leads from a pasted token to a reply.
import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { problemCodes } from '../../src/contract/output/problem-codes.ts'
import { adminPassword, contract } from '../support/app.ts'
import { type Listening, listeningServer } from '../support/listening.ts'
import { openBrowser, patienceMs, type Watched, watchedContext } from './chromium.ts'

const tags = (contract.tags as { name: string }[]).map(({ name }) => name)
const operations = Object.values(contract.paths as Record<string, Record<string, { operationId?: string }>>)
  .flatMap((path) => Object.values(path))
  .flatMap(({ operationId }) => (operationId === undefined ? [] : [operationId]))

let browser: Browser
let server: Listening
let watched: Watched
let page: Page

beforeAll(async () => {
  browser = await openBrowser()
  server = await listeningServer()
})
afterAll(async () => {
  await browser?.close()
  await server?.close()
})
beforeEach(async () => {
  watched = await watchedContext(browser, server.url)
  page = await watched.context.newPage()
})
afterEach(() => watched.context.close())

async function openDocumentation(anchor = ''): Promise<void> {
  await page.goto(`${server.url}/api/admin/documentation${anchor}`)
  await page.locator('.opblock-tag').first().waitFor()
}

async function signIn(): Promise<string> {
  const answer = await fetch(`${server.url}/api/admin/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json' },
    body: JSON.stringify({ email: 'admin@example.com', password: adminPassword, device_name: 'Browser test' }),
  })
  const { data } = (await answer.json()) as { data: { token: string } }
  return data.token
}

async function authorize(token: string): Promise<void> {
  await page.locator('.auth-wrapper .btn.authorize').click()
  // The session form beside it stays empty: the browser sends the cookie by itself.
  await page.locator('#auth-bearer-value').fill(token)
  await page.locator('#auth-bearer-value').press('Enter')
  await page.locator('.auth-btn-wrapper .btn-done').first().click()
}

/**
 * The tags and operations of the page from top to bottom. The page draws only the visible part, so
 * the test scrolls while it reads.
 */
async function listedOnPage(): Promise<{ tags: string[]; operations: string[] }> {
  const [tags, operations] = [new Set<string>(), new Set<string>()]
  const seen = () =>
    page.evaluate(() => {
      const all = (selector: string) => Array.from(document.querySelectorAll(selector))
      const bottom = document.documentElement.scrollHeight - window.innerHeight - window.scrollY
      return {
        tags: all('.opblock-tag').map((each) => each.getAttribute('data-tag') ?? ''),
        operations: all('.opblock-summary-operation-id').map((each) => each.textContent ?? ''),
        isEnd: bottom < 2,
      }
    })
  for (let patience = 300; patience > 0; patience--) {
    const found = await seen()
    for (const tag of found.tags) tags.add(tag)
    for (const operation of found.operations) operations.add(operation.replaceAll('\u200b', ''))
    if (found.isEnd && operations.size >= found.operations.length && patience < 290) break
    await page.mouse.wheel(0, 500)
    await page.waitForTimeout(40)
  }
  return { tags: [...tags], operations: [...operations] }
}

/**
 * Opens an operation, presses "Try it out" and "Execute", and returns the status that the page
 * shows.
 */
async function tryOut(tag: string, operation: string): Promise<string | undefined> {
  await openDocumentation(`#/${tag}/${operation}`)
  await page.reload()
  const block = page.locator(`#operations-${tag}-${operation}`)
  await block.locator('.try-out__btn').waitFor()
  await block.locator('.try-out__btn').click()
  await block.locator('.btn.execute').click()
  const status = block.locator('.live-responses-table .response-col_status').last()
  await status.waitFor()
  return (await status.textContent())?.trim()
}

describe('getDocumentation', { timeout: patienceMs }, () => {
  it('lists every tag and every operation of the contract, without asking another host or straining the CSP', async () => {
    await openDocumentation()
    const listed = await listedOnPage()
    expect(listed.tags).toEqual(tags)
    expect(listed.operations.sort()).toEqual(operations.sort())
    expect(await page.title()).toBe('Accord CRM API')
    expect(watched.elsewhere).toEqual([])
    expect(watched.complaints).toEqual([])
  })

  it('shows the shapes of requests and replies', async () => {
    await openDocumentation('#/Leads/createLead')
    const block = page.locator('#operations-Leads-createLead')
    await block.locator('.opblock-body').waitFor()
    expect(await block.locator('.opblock-section-request-body').textContent()).toContain('title')
    expect(await block.locator('.responses-table').first().textContent()).toContain('422')
    expect(watched.complaints).toEqual([])
  })

  it('keeps a pasted token over a reload, but not in a new tab', async () => {
    await openDocumentation()
    await authorize(await signIn())
    await page.reload()
    await page.locator('.auth-wrapper .btn.authorize.locked').waitFor()
    expect(await tryOut('Sources', 'listSources')).toBe('200')
    const other = await watched.context.newPage()
    await other.goto(`${server.url}/api/admin/documentation`)
    await other.locator('.auth-wrapper .btn.authorize.unlocked').waitFor()
    expect(watched.complaints).toEqual([])
  })

  it('runs Try it out on the leads: 200 with a token, 401 without', async () => {
    await openDocumentation()
    expect(await tryOut('Leads', 'listLeads')).toBe('401')
    await page.reload()
    await authorize(await signIn())
    expect(await tryOut('Leads', 'listLeads')).toBe('200')
    expect(watched.elsewhere).toEqual([])
  })
})

describe('getErrorCatalogue', { timeout: patienceMs }, () => {
  it('has an entry for every problem code, at the address that problems give', async () => {
    const refused = await fetch(`${server.url}/api/admin/leads`, { headers: { accept: 'application/json' } })
    const { type } = (await refused.json()) as { type: string }
    await page.goto(type)
    expect(await page.locator('section:target').textContent()).toContain('unauthenticated')
    const ids = await page.locator('section').evaluateAll((all) => all.map((each) => each.id))
    expect(ids.sort()).toEqual(Object.keys(problemCodes).sort())
    expect(watched.complaints).toEqual([])
  })
})
