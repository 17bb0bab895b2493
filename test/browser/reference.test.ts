// The reference page in a browser: it works under its content security policy, lists everything,
// and shows operations with their fields, samples and errors, also after early clicks or offline.
import type { Locator, Page } from 'playwright-core'
import { afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { contract } from '../support/app.ts'
import { listeningServer } from '../support/listening.ts'
import { until } from '../support/until.ts'
import { useOne } from '../support/using.ts'
import { browserTests, openBrowser, patienceMs, type Watched, watchedContext } from './chromium.ts'
import { opened, openReference, operationOn } from './reference-page.ts'

const { describe } = browserTests

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

const openDocumentation = (anchor = ''): Promise<void> => openReference(watched, page, server.url, anchor)
const blockOf = (tag: string, id: string): Locator => operationOn(page, tag, id)
const openOperation = (tag: string, id: string): Promise<Locator> => opened(watched, page, server.url, tag, id)

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

  it('loads Swagger UI at the first "Try it out", and then opens the form', async () => {
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
      person: { name: expect.any(String), contact_numbers: [{ value: expect.any(String), label: 'work' }] },
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
