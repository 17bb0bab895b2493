// Everyone can use the pages for people, in light and dark: axe finds no violation of WCAG 2.1 A
// and AA.
import type { Page } from 'playwright-core'
import { afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { unsubscribeToken } from '../../src/resources/marketing/unsubscribe.ts'
import { adminPassword } from '../support/app.ts'
import { listeningServer } from '../support/listening.ts'
import { useOne } from '../support/using.ts'
import { browserTests, openBrowser, patienceMs, violationsIn, type Watched, watchedContext } from './chromium.ts'
import { opened, openReference } from './reference-page.ts'

const { describe } = browserTests

let watched: Watched
let page: Page
let form: string

const browser = useOne(openBrowser)
const server = useOne(listeningServer)
beforeAll(async () => {
  let token = ''
  async function post(path: string, body: object): Promise<any> {
    const headers = {
      accept: 'application/json',
      'content-type': 'application/json',
      ...(token && { authorization: `Bearer ${token}` }),
    }
    const answer = await fetch(`${server.url}/api/admin${path}`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    })
    const { data, ...problem } = (await answer.json()) as { data: unknown }
    expect(answer.ok, JSON.stringify(problem)).toBe(true)
    return data
  }
  token = (await post('/login', { email: 'admin@example.com', password: adminPassword })).token
  const options = [{ name: 'One' }, { name: 'Two' }]
  const attributes: object[] = []
  for (const type of ['text', 'select', 'multiselect', 'boolean', 'address', 'phone'])
    attributes.push({
      attribute_id: (
        await post('/settings/attributes', {
          code: `f_${type}`,
          name: `A ${type}`,
          type,
          entity_type: 'persons',
          ...(type.endsWith('select') && { options }),
        })
      ).id,
    })
  const more = { submit_button_label: 'Send', submit_success_action: 'message', submit_success_content: 'Thank you.' }
  form = (await post('/settings/web-forms', { title: 'Contact us', ...more, attributes })).form_id
})
beforeEach(async () => {
  watched = await watchedContext(browser, server.url)
  page = await watched.context.newPage()
})
afterEach(() => watched.context.close())

const documentation = '/api/admin/documentation'
const goto = (path: string) => page.goto(`${server.url}${path}`)

async function signIn(): Promise<void> {
  await page.locator('#authorize').click()
  await page.locator('#sign-in-email').fill('admin@example.com')
  await page.locator('#sign-in-password').fill(adminPassword)
  await page.locator('#sign-in-form .primary').click()
  await page.locator('#authorize.is-in').waitFor()
}

/** The states of pages, each with what leads there. */
const states: Readonly<Record<string, () => Promise<unknown>>> = {
  'the home page': () => goto('/'),
  'the reference': () => openReference(watched, page, server.url),
  'an operation': () => opened(watched, page, server.url, 'Leads', 'updateLead'),
  'an operation with opened rows': async () => {
    const block = await opened(watched, page, server.url, 'Persons', 'createPerson')
    for (const row of await block.locator('details:not([open]) > summary').all())
      if (await row.isVisible()) await row.click()
  },
  'the form of "Try it out"': async () => {
    const block = await opened(watched, page, server.url, 'Leads', 'createLead')
    await block.locator('.try-out__btn').click()
    await block.locator('.btn.execute').waitFor()
  },
  'a reply of "Try it out"': async () => {
    const block = await opened(watched, page, server.url, 'Sources', 'listSources')
    await signIn()
    await block.locator('.try-out__btn').click()
    await block.locator('.btn.execute').click()
    await block.locator('.live-responses-table .response-col_status').last().waitFor()
  },
  'the dialog for signing in': async () => {
    await openReference(watched, page, server.url)
    await page.locator('#authorize').click()
    await page.locator('#sign-in-email').waitFor()
  },
  'results of the search': async () => {
    await openReference(watched, page, server.url)
    await page.locator('#search').fill('lead')
    await page.locator('#result-0').waitFor()
  },
  'a search that finds nothing': async () => {
    await openReference(watched, page, server.url)
    await page.locator('#search').fill('xqzzyw')
    await page.locator('#results').waitFor()
  },
  'a guide': () => goto(`${documentation}/guides/webhooks`),
  'the guide to changes': () => goto(`${documentation}/guides/changes`),
  'the problem catalogue': () => goto(`${documentation}/errors`),
  'the sign-in page': () => goto('/api/admin/leads'),
  'a refused sign-in': async () => {
    await goto('/api/admin/leads')
    await page.fill('#email', 'admin@example.com')
    await page.fill('#password', 'wrong')
    await page.keyboard.press('Enter')
    await page.locator('[role=alert]:visible, [role=status]:visible').first().waitFor()
  },
  'the page for a new password': () => goto('/api/admin/reset-password#token=a&email=b@example.com'),
  'a web form': () => goto(`/web-forms/forms/${form}/form.html`),
  'the page for unsubscribing': () => goto(`/u/${unsubscribeToken(server.app.services, 'ada@example.com')}`),
}

describe('axe finds nothing', { timeout: patienceMs }, () => {
  it.each(
    Object.keys(states).flatMap((state) => (['light', 'dark'] as const).map((scheme) => [state, scheme] as const)),
  )('in %s, %s', async (state, colorScheme) => {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    await states[state]?.()
    expect(await violationsIn(page)).toEqual([])
  })

  it('except what is wrong', async () => {
    await goto(`${documentation}/guides/webhooks`)
    await page.evaluate(() => document.querySelector('main')?.append(new Image()))
    expect(await violationsIn(page)).toEqual([expect.stringContaining('image-alt')])
  })
})
