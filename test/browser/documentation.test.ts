// The documentation in a browser: search finds every operation, "Try it out" works after signing
// in, the samples run, and every reader can use the pages. reference.test.ts has the reference.
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Locator, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { problemCodes } from '../../src/contract/output/problem-codes.ts'
import { guides } from '../../src/http/docs/guides.ts'
import { attributes } from '../properties/attribute-values.ts'
import { adminPassword, contract } from '../support/app.ts'
import { listeningServer } from '../support/listening.ts'
import { needing } from '../support/programs.ts'
import { until } from '../support/until.ts'
import { useOne } from '../support/using.ts'
import { browserTests, openBrowser, patienceMs, type Watched, watchedContext } from './chromium.ts'
import { opened, openReference, operationOn } from './reference-page.ts'

const { describe } = browserTests

const run = promisify(execFile)

let watched: Watched
let page: Page

const browser = useOne(openBrowser)
const server = useOne(listeningServer)
beforeAll(async () => {
  // The first request renders the page.
  await until(async () => (await fetch(`${server.url}/api/admin/documentation`)).ok)
})
beforeEach(async () => {
  watched = await watchedContext(browser, server.url)
  page = await watched.context.newPage()
})
afterEach(() => watched.context.close())

const openDocumentation = (anchor = ''): Promise<void> => openReference(watched, page, server.url, anchor)
const blockOf = (tag: string, id: string): Locator => operationOn(page, tag, id)
const openOperation = (tag: string, id: string): Promise<Locator> => opened(watched, page, server.url, tag, id)

async function tokenOf(): Promise<string> {
  const answer = await fetch(`${server.url}/api/admin/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json' },
    body: JSON.stringify({ email: 'admin@example.com', password: adminPassword, device_name: 'Browser test' }),
  })
  const { data } = (await answer.json()) as { data: { token: string } }
  return data.token
}

async function signIn(kind: 'token' | 'cookie'): Promise<void> {
  await page.locator('#authorize').click()
  await page.locator('#sign-in-email').fill('admin@example.com')
  await page.locator('#sign-in-password').fill(adminPassword)
  await page.locator(`input[value=${kind}]`).check()
  await page.locator('#sign-in-form .primary').click()
  await page.locator('#authorize.is-in').waitFor()
}

/** Presses "Try it out" and "Execute". Returns the status that the page shows. */
async function tryOut(block: Locator): Promise<string | undefined> {
  await block.locator('.try-out__btn').click()
  await block.locator('.btn.execute').click()
  const status = block.locator('.live-responses-table .response-col_status').last()
  await status.waitFor()
  return (await status.textContent())?.trim()
}

describe('the search', { timeout: patienceMs }, () => {
  it('finds operations by path, summary, operationId, parameter and problem code, and guides', async () => {
    await openDocumentation()
    await page.keyboard.press('/')
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('search')
    const first = page.locator('#result-0')
    for (const [query, expected] of [
      ['createLead', 'Create a lead'],
      ['/leads/kanban', 'Show leads as a board'],
      ['move stage', 'Move a lead to another stage'],
      ['lead_pipeline_stage_id[not]', 'parameter lead_pipeline_stage_id[not]'],
      ['version_mismatch', 'The record has changed'],
      ['webhooks payload', 'Every event with its payload'],
    ] as const) {
      await page.locator('#search').fill(query)
      await until(async () => (await first.textContent())?.includes(expected) ?? false)
    }
    await page.locator('#search').fill('listSources')
    await until(async () => (await first.textContent())?.includes('sources') ?? false)
    await page.keyboard.press('Enter')
    await blockOf('Sources', 'listSources').locator('.errors').waitFor()
    expect(watched.complaints).toEqual([])
  })
})

describe('"Try it out" on a list', { timeout: patienceMs }, () => {
  it('sends only what was typed, also with attributes of all types', async () => {
    const authorization = `Bearer ${await tokenOf()}`
    const made: number[] = []
    for (const [type, more] of attributes) {
      const body = JSON.stringify({ code: `t_${type}`, name: `A ${type}`, type, entity_type: 'leads', ...more })
      const headers = { 'content-type': 'application/json', accept: 'application/json', authorization }
      const reply = await fetch(`${server.url}/api/admin/settings/attributes`, { method: 'POST', headers, body })
      expect(reply.status).toBe(201)
      made.push(((await reply.json()) as { data: { id: number } }).data.id)
    }
    const block = await openOperation('Leads', 'listLeads')
    await signIn('token')
    let sent = page.waitForRequest(/\/api\/admin\/leads/)
    expect(await tryOut(block)).toContain('200')
    expect(new URL((await sent).url()).search).toBe('')
    await block.locator('tr.field button', { hasText: 'custom_attributes' }).click()
    await block.locator('tr[data-param-name="custom_attributes[t_text]"] input').fill('a b')
    sent = page.waitForRequest(/\/api\/admin\/leads\?/)
    await block.locator('.btn.execute').click()
    expect([...new URL((await sent).url()).searchParams]).toEqual([['custom_attributes[t_text]', 'a b']])
    // The samples would have values of these attributes.
    for (const id of made)
      await fetch(`${server.url}/api/admin/settings/attributes/${id}`, {
        method: 'DELETE',
        headers: { accept: 'application/json', authorization },
      })
  })
})

describe('signing in', { timeout: patienceMs }, () => {
  it('fills Authorize with a token, which a reload keeps and a new tab does not have', async () => {
    let block = await openOperation('Sources', 'listSources')
    expect(await tryOut(block)).toContain('401')
    await signIn('token')
    await page.reload()
    block = blockOf('Sources', 'listSources')
    await block.locator('.errors').waitFor()
    const sent = page.waitForRequest(/\/api\/admin\/sources/)
    expect(await tryOut(block)).toContain('200')
    const headers = await (await sent).allHeaders()
    expect([headers.accept, headers.authorization]).toEqual([
      'application/json',
      expect.stringMatching(/^Bearer \d+\|/),
    ])
    expect(await block.locator('.curl-command').textContent()).toContain('$ACCORD_TOKEN')
    const other = await watched.context.newPage()
    await other.goto(`${server.url}/api/admin/documentation`)
    expect(await other.locator('#authorize').textContent()).toBe('Authorize')
  })

  it('works with a cookie: writes send the CSRF token', async () => {
    const block = await openOperation('Leads', 'createLead')
    await signIn('cookie')
    const sent = page.waitForRequest((request) => request.method() === 'POST' && request.url().endsWith('/leads'))
    await block.locator('.try-out__btn').click()
    await block.locator('textarea').fill('{ "title": "From a page", "lead_value": 1 }')
    await block.locator('.btn.execute').click()
    const status = block.locator('.live-responses-table .response-col_status').last()
    await until(async () => (await status.textContent())?.includes('201') ?? false)
    const headers = await (await sent).allHeaders()
    expect([headers['x-xsrf-token'], headers.authorization]).toEqual([expect.stringMatching(/.{20}/), undefined])
    // A cookie does not come along to a terminal.
    const command = (await block.locator('.curl-command').textContent()) ?? ''
    expect(command).toContain('-H "Authorization: Bearer $ACCORD_TOKEN"')
    expect(command.toLowerCase()).not.toContain('xsrf')
    expect(await page.locator('#sign-in input').evaluateAll((all) => all.map(({ id }) => id))).not.toContain('session')
  })

  it('shows why a sign-in failed', async () => {
    await openDocumentation()
    await page.locator('#authorize').click()
    await page.locator('#sign-in-email').fill('admin@example.com')
    await page.locator('#sign-in-password').fill('wrong password')
    await page.locator('#sign-in-form .primary').click()
    await until(async () => (await page.locator('#sign-in-error').textContent()) !== '')
    expect(await page.locator('#sign-in').isVisible()).toBe(true)
  })
})

describe('the samples', { timeout: patienceMs }, () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'accord-samples-'))
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  const commands = {
    curl: async (text: string) => ['bash', ['-c', `${text} -sS -w '%{http_code}'`]] as const,
    TypeScript: async (text: string) => {
      await writeFile(join(folder, 'sample.mjs'), text)
      return [process.execPath, [join(folder, 'sample.mjs')]] as const
    },
    Python: async (text: string) => ['python3', ['-c', text]] as const,
  }

  needing('curl', 'python3').it.each([
    ['Leads', 'listLeads', '200'],
    ['Leads', 'createLead', '201'],
    ['Files', 'uploadFile', '201'],
    ['Organizations', 'exportOrganizations', '200'],
  ])('of %s %s run as pasted', async (tag, id, status) => {
    const env = { PATH: process.env.PATH, ACCORD_TOKEN: await tokenOf(), PYTHONDONTWRITEBYTECODE: '1' }
    const block = await openOperation(tag, id)
    for (const [language, commandFor] of Object.entries(commands)) {
      await block.locator('.tabs button', { hasText: language }).click()
      const text = (await block.locator('.samples code').textContent()) ?? ''
      if (language === 'curl') expect(text).toContain('curl -g ')
      const [command, args] = await commandFor(text)
      const { stdout } = await run(command, args, { cwd: folder, env, timeout: 60_000 })
      expect(stdout, `${language}:\n${text}`).toContain(status)
    }
  })
})

describe('the guides', { timeout: patienceMs }, () => {
  it('render, and the guide to webhooks has every event with its body', async () => {
    for (const { name, title } of guides) {
      await page.goto(`${server.url}/api/admin/documentation/guides/${name}`)
      expect(await page.locator('h1').textContent()).toBe(title)
    }
    await page.goto(`${server.url}/api/admin/documentation/guides/quick-start`)
    expect(await page.locator('article pre').first().textContent()).toContain(`${server.url}/api/admin/login`)
    await page.goto(`${server.url}/api/admin/documentation/guides/webhooks#event-lead.won`)
    const text = (await page.locator('article').textContent()) ?? ''
    const events = Object.values(contract.paths as Record<string, Record<string, { 'x-events'?: string[] }>>)
      .flatMap((path) => Object.values(path))
      .flatMap((each) => each['x-events'] ?? [])
    expect(events.filter((event) => !text.includes(event))).toEqual([])
    expect(text).toContain('"entity_type": "leads"')
    expect([watched.elsewhere, watched.complaints]).toEqual([[], []])
  })
})

describe('every reader', { timeout: patienceMs }, () => {
  it('can read on a phone: nothing is wider than the screen, and the menu opens', async () => {
    await page.setViewportSize({ width: 390, height: 844 })
    await openOperation('Leads', 'createLead')
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390)
    expect(await page.locator('#sidebar').isVisible()).toBe(false)
    await page.locator('#menu').click()
    expect(await page.locator('#sidebar').isVisible()).toBe(true)
    await page.keyboard.press('Escape')
    expect(await page.locator('#sidebar').isVisible()).toBe(false)
  })

  it('can open an operation with the keyboard', async () => {
    await openDocumentation()
    await page.locator('.opblock-tag[data-tag=Sources] button').focus()
    await page.keyboard.press('Enter')
    await blockOf('Sources', 'listSources').waitFor()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await blockOf('Sources', 'listSources').locator('.errors').waitFor()
  })

  it('can print: only the content, with folded parts opened', async () => {
    const block = await openOperation('Leads', 'createLead')
    await page.evaluate(() => dispatchEvent(new Event('beforeprint')))
    await page.emulateMedia({ media: 'print' })
    // The open operation prints alone.
    expect(await page.locator('main h1').isVisible()).toBe(false)
    expect(await page.locator('.opblock-tag').first().isVisible()).toBe(false)
    expect([await page.locator('#sidebar').isVisible(), await page.locator('header').isVisible()]).toEqual([
      false,
      false,
    ])
    expect(await block.locator('.errors details dl').isVisible()).toBe(true)
    expect(await block.locator('.request-body [data-field=person] [data-field=emails]').first().isVisible()).toBe(true)
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
