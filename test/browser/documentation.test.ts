// The documentation in a browser: it works offline and with its content security policy, search
// finds every operation, and "Try it out" works after signing in.
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Locator, Page, Response } from 'playwright-core'
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

const { describe } = browserTests

const run = promisify(execFile)
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const tags = (contract.tags as { name: string }[]).map(({ name }) => name)
const operations = Object.values(contract.paths as Record<string, Record<string, { operationId: string }>>)
  .flatMap((path) => Object.values(path))
  .map(({ operationId }) => operationId)

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

/** Opens the reference page. Retries when the busy server refuses it or its data with 503. */
async function openDocumentation(anchor = ''): Promise<void> {
  for (let attempt = 0; attempt < 8; attempt++) {
    let isRefused = false
    const look = (response: Response) => {
      // The files of the page are never refused.
      if (/\/(files|static)\//.test(response.url())) expect([200, 304], response.url()).toContain(response.status())
      if (response.status() === 503) isRefused = true
    }
    page.on('response', look)
    await page.goto(`${server.url}/api/admin/documentation${anchor}`, { waitUntil: 'load' })
    page.off('response', look)
    if (!isRefused) break
    watched.complaints.length = 0
    await page.goto('about:blank')
    await page.waitForTimeout(1500)
  }
  await page.locator('.opblock-tag').first().waitFor()
}

const blockOf = (tag: string, id: string): Locator => page.locator(`#operations-${tag.replace(/ /g, '_')}-${id}`)

/** Opens an operation by its deep link, and waits until it is rendered. */
async function openOperation(tag: string, id: string): Promise<Locator> {
  await openDocumentation(`#/${encodeURIComponent(tag)}/${id}`)
  const block = blockOf(tag, id)
  await block.locator('.errors').waitFor()
  return block
}

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

/** Returns the violations of WCAG 2.1 A and AA that axe finds, with the first element of each. */
async function violations(): Promise<string[]> {
  // Playwright's evaluate bypasses the content security policy.
  const found = await page.evaluate(`${axe};
    axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'], resultTypes: ['violations'] })
      .then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes[0].html.slice(0, 200)))`)
  return found as string[]
}

describe('the reference', { timeout: patienceMs }, () => {
  it('lists every tag, closed, and every operation, without another host and under its policy', async () => {
    await openDocumentation()
    const named = await page
      .locator('.opblock-tag')
      .evaluateAll((all) => all.map((each) => each.getAttribute('data-tag')))
    expect(named).toEqual(tags)
    expect(await page.locator('.opblock').count()).toBe(0)
    const links = await page
      .locator('#sidebar [data-operation]')
      .evaluateAll((all) =>
        all.map((each) => ({ id: each.getAttribute('data-operation'), text: each.textContent ?? '' })),
      )
    expect(links.map(({ id }) => id).sort()).toEqual([...operations].sort())
    expect(links.find(({ id }) => id === 'createLead')?.text).toMatch(/Create a lead\s*\/leads$/)
    expect(links.find(({ id }) => id === 'getHealth')?.text).toMatch(/\/healthz$/)
    expect(await page.title()).toBe('Accord CRM API')
    expect([watched.elsewhere, watched.complaints]).toEqual([[], []])
  })

  it('keeps clicks that come before its scripts, and moves nothing when it carries them out', async () => {
    let release = (): void => undefined
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    await page.route('**/reference.js', async (route) => {
      await held
      await route.continue()
    })
    await page.goto(`${server.url}/api/admin/documentation`, { waitUntil: 'commit' })
    const heading = page.locator('.opblock-tag[data-tag=Sources]')
    const before = await heading.boundingBox()
    await heading.locator('button').click()
    await page.locator('.opblock-tag[data-tag=Types] button').click()
    expect(await page.locator('.opblock').count()).toBe(0)
    release()
    await blockOf('Sources', 'listSources').waitFor()
    await blockOf('Types', 'listTypes').waitFor()
    const after = await heading.boundingBox()
    expect([after?.x, after?.width, after?.height]).toEqual([before?.x, before?.width, before?.height])
    expect(watched.complaints).toEqual([])
  })

  it('loads Swagger UI at the first "Try it out", and opens then the form that was asked for', async () => {
    const loaded: string[] = []
    page.on('request', (request) => loaded.push(new URL(request.url()).pathname.split('/').at(-1) ?? ''))
    const block = await openOperation('Sources', 'listSources')
    expect(loaded).not.toContain('swagger-ui-bundle.js')
    await block.locator('.try-out__btn').click()
    await block.locator('.btn.execute').waitFor()
    expect(loaded).toContain('swagger-ui-bundle.js')
    expect(await block.locator('.try-out__btn').textContent()).toBe('Cancel')
    await block.locator('.try-out__btn').click()
    expect([await block.locator('.btn.execute').isVisible(), await block.locator('.inputs').isVisible()]).toEqual([
      false,
      true,
    ])
    expect(watched.complaints).toEqual([])
  })

  it('says offline that an operation or the form cannot be loaded, and tries again on request', async () => {
    await openDocumentation()
    await watched.context.setOffline(true)
    await page.locator('.opblock-tag[data-tag=Sources] button').click()
    const block = blockOf('Sources', 'getSource')
    await block.locator('.opblock-summary-control').click()
    await block.locator('[role=alert]').waitFor()
    expect(await block.locator('[role=alert]').textContent()).toContain('This computer is offline.')
    await watched.context.setOffline(false)
    await block.locator('.retry').click()
    await block.locator('.errors').waitFor()
    await watched.context.setOffline(true)
    await block.locator('.try-out__btn').click()
    await block.locator('.try-form [role=alert]').waitFor()
    await watched.context.setOffline(false)
    await block.locator('.try-out__btn').click()
    await block.locator('.btn.execute').waitFor()
  })

  it('puts the operation of a deep link at the top, and marks it in the sidebar', async () => {
    const block = await openOperation('Email Templates', 'createEmailTemplate')
    const header = await page.locator('header').boundingBox()
    await until(async () => Math.abs(((await block.boundingBox())?.y ?? 0) - (header?.height ?? 0)) < 40)
    const marked = page.locator('#sidebar [aria-current=true]')
    expect(await marked.getAttribute('data-operation')).toBe('createEmailTemplate')
    expect(await marked.isVisible()).toBe(true)
  })

  it('shows permission, ability, events, related operations, samples, and the errors that are its own', async () => {
    const block = await openOperation('Leads', 'createLead')
    expect(await block.locator('.facts').textContent()).toMatch(/leads\.create[\s\S]*leads:write[\s\S]*lead\.create/)
    expect(await block.locator('.facts a', { hasText: 'Show a lead' }).getAttribute('href')).toContain(
      '#/Leads/getLead',
    )
    await block.locator('.tabs button', { hasText: 'JSON' }).click()
    expect(JSON.parse((await block.locator('.samples code').textContent()) ?? '')).toMatchObject({
      title: '40 seats for Analytical Ltd',
      lead_value: 4821.5,
      person: { name: expect.any(String) },
      products: [{ product_id: expect.any(Number), quantity: expect.any(Number) }],
    })
    expect(
      await block.locator('[data-code]').evaluateAll((all) => all.map((each) => (each as HTMLElement).dataset.code)),
    ).toEqual(['200', '201'])
    const own = block.locator('.errors > dl > dt')
    expect(await own.allTextContents()).toEqual(['409', '422'])
    expect(await block.locator('.errors summary').textContent()).toMatch(
      /Common errors\s+400\s*401\s*403\s*413\s*415\s*429\s*503/,
    )
    await block.locator('.errors summary').click()
    const link = block.locator('.errors a', { hasText: 'rate_limited' })
    expect(await link.getAttribute('href')).toBe('/api/admin/documentation/errors#rate_limited')
    expect(watched.complaints).toEqual([])
  })

  it('lists the fields of bodies and replies in words, with nested fields that open', async () => {
    const block = await openOperation('Leads', 'createLead')
    const body = block.locator('.request-body')
    const head = (name: string): Promise<string | null> =>
      body.locator(`> .fields > [data-field=${name}] > .field-head`).textContent()
    expect(await head('title')).toBe('titletextrequired1 to 255 characters')
    expect(await head('closed_at')).toBe('closed_atdate and time or null')
    expect(await head('products')).toBe('productslist of objectsup to 200 entries')
    expect(await head('lead_source_id')).toBe('lead_source_idwhole number or object')
    const person = body.locator('> .fields > [data-field=person]')
    expect(await person.locator('[data-field=emails]').count()).toBe(0)
    await person.locator('summary', { hasText: 'fields of person' }).focus()
    await page.keyboard.press('Enter')
    await person.locator('[data-field=emails]').waitFor()
    // The record of a reply is open at first.
    expect(await block.locator('.replies [data-field=data] [data-field=stage_changed_at]').isVisible()).toBe(true)
    const text = (await block.textContent()) ?? ''
    expect(text).not.toMatch(/9007199254740991|9,007,199|\$ref|\$\$ref/)
    expect(text).not.toMatch(/matches \S{31}/)
  })

  it('has the samples beside the text above 1,200 pixels, where they stay while scrolling', async () => {
    await page.setViewportSize({ width: 1280, height: 800 })
    const block = await openOperation('Leads', 'createLead')
    const [text, side] = [block.locator('.text'), block.locator('.side')]
    const [left, right] = [await text.boundingBox(), await side.boundingBox()]
    expect((left?.x ?? 0) + (left?.width ?? 0)).toBeLessThanOrEqual(right?.x ?? 0)
    await page.evaluate(() => scrollBy(0, 700))
    await until(async () => Math.abs(((await side.boundingBox())?.y ?? 0) - 72) < 2)
    await page.setViewportSize({ width: 1100, height: 800 })
    const [above, below] = [await text.boundingBox(), await side.boundingBox()]
    expect(below?.y ?? 0).toBeGreaterThanOrEqual((above?.y ?? 0) + (above?.height ?? 0))
  })

  it('folds the filters of a list, one row for each field', async () => {
    const block = await openOperation('Leads', 'listLeads')
    expect(await block.locator('.parameters > .fields > [data-field]').count()).toBeLessThan(12)
    const filters = block.locator('.filters')
    expect(await filters.locator('[data-field]').count()).toBe(0)
    await filters.locator('> summary').click()
    const value = filters.locator('[data-field=lead_value]')
    expect(await value.locator('.operators').textContent()).toBe('[gt][gte][lt][lte]')
    await block.locator('.try-out__btn').click()
    const field = block.locator('tr.field button', { hasText: 'lead_value' })
    expect(await field.textContent()).toMatch(/lead_value\s*\[gt\]\s*\[gte\]\s*\[lt\]\s*\[lte\]/)
    await field.click()
    expect(await block.locator('tr[data-param-name="lead_value[gte]"] input').isEnabled()).toBe(true)
  })
})

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
      ['version_mismatch', 'problem code version_mismatch'],
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
    // The example of a lead refers to product 2.
    for (const sku of id === 'createLead' ? ['one', 'two'] : [])
      await fetch(`${server.url}/api/admin/products`, {
        method: 'POST',
        headers: {
          ...{ 'content-type': 'application/json', accept: 'application/json' },
          authorization: `Bearer ${env.ACCORD_TOKEN}`,
        },
        body: JSON.stringify({ sku, name: sku, price: 1 }),
      })
    const block = await openOperation(tag, id)
    for (const [language, commandFor] of Object.entries(commands)) {
      await block.locator('.tabs button', { hasText: language }).click()
      const written = (await block.locator('.samples code').textContent()) ?? ''
      // The address of a person is unique.
      const text = written.replace('ada@example.com', `${language}@example.com`)
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
  it.each(['light', 'dark'] as const)('can use the pages in %s: axe finds nothing', async (colorScheme) => {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    await openOperation('Leads', 'updateLead')
    expect(await violations()).toEqual([])
    await page.locator('#authorize').click()
    expect(await violations()).toEqual([])
    await page.goto(`${server.url}/api/admin/documentation/guides/webhooks`)
    expect(await violations()).toEqual([])
    await page.evaluate(() => document.querySelector('main')?.append(new Image()))
    expect(await violations()).toEqual([expect.stringContaining('image-alt')])
  })

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
