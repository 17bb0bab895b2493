// Web forms in a browser: the page with and without JavaScript, and the form embedded in another
// site, whose styles and policy must not affect it.
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { adminPassword } from '../support/app.ts'
import { listeningServer } from '../support/listening.ts'
import { useOne } from '../support/using.ts'
import { browserTests, openBrowser, patienceMs, watchedContext } from './chromium.ts'

const { describe } = browserTests

let host: Server
let hostUrl: string
let token: string
const attribute: Record<string, number> = {}
let count = 0

async function call(method: string, path: string, body?: unknown): Promise<any> {
  const answer = await fetch(`${server.url}/api/admin${path}`, {
    method,
    headers: {
      accept: 'application/json',
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(token && { authorization: `Bearer ${token}` }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  return answer.json()
}

const server = useOne(listeningServer)
const browser = useOne(openBrowser)
beforeAll(async () => {
  token = ''
  const login = { email: 'admin@example.com', password: adminPassword, device_name: 'a' }
  token = (await call('POST', '/login', login)).data.token
  await call('POST', '/settings/attributes', {
    entity_type: 'leads',
    code: 'topics',
    name: 'Topics',
    type: 'multiselect',
    options: [{ name: 'Prices' }, { name: 'Delivery' }],
  })
  await call('POST', '/settings/attributes', { entity_type: 'persons', code: 'home', name: 'Address', type: 'address' })
  await call('POST', '/settings/attributes', {
    entity_type: 'persons',
    code: 'agrees',
    name: 'I agree to be called',
    type: 'boolean',
  })
  for (const { id, code, entity_type } of (await call('GET', '/settings/attributes?per_page=100')).data)
    attribute[`${entity_type}.${code}`] = id
  // A page of another origin, whose policy and styles would break a form that is not isolated.
  host = createServer((request, response) => {
    const form = new URL(request.url ?? '/', 'http://x').searchParams.get('form') ?? ''
    response.writeHead(200, {
      'content-type': 'text/html',
      'content-security-policy': `default-src 'none'; script-src ${server.url}; connect-src ${server.url}; style-src 'sha256-unused'`,
    })
    response.end(
      `<!doctype html><title>Ours</title><h2>Before</h2><script src="${server.url}/web-forms/forms/${form}/form.js"></script><h2>After</h2>`,
    )
  })
  await new Promise<void>((resolve) => host.listen(0, '127.0.0.1', resolve))
  hostUrl = `http://127.0.0.1:${(host.address() as AddressInfo).port}`
})
afterAll(() => {
  host?.close()
})

async function makeForm(changes: object = {}): Promise<string> {
  const { data } = await call('POST', '/settings/web-forms', {
    title: 'Talk to us',
    description: 'We answer within a day.\nPromised.',
    submit_button_label: 'Send',
    submit_success_action: 'message',
    submit_success_content: 'Thank <you>.',
    create_lead: true,
    attributes: [
      { attribute_id: attribute['persons.name'], name: 'Your name', placeholder: 'First and last' },
      { attribute_id: attribute['persons.emails'], name: 'E-mail' },
      { attribute_id: attribute['persons.contact_numbers'], name: 'Telephone' },
      { attribute_id: attribute['persons.organization_id'] },
      { attribute_id: attribute['persons.home'] },
      { attribute_id: attribute['leads.description'], name: 'What is it about?' },
      { attribute_id: attribute['leads.lead_source_id'], name: 'How did you find us?', is_required: false },
      { attribute_id: attribute['leads.topics'] },
      { attribute_id: attribute['leads.expected_close_date'], name: 'Until when?' },
      { attribute_id: attribute['persons.agrees'], is_required: true },
    ],
    ...changes,
  })
  return data.form_id
}

const formUrl = (form: string): string => `${server.url}/web-forms/forms/${form}/form.html`

async function fill(page: Page, email = `grace${++count}@example.org`): Promise<string> {
  await page.getByLabel('Your name').fill('Grace Hopper')
  await page.getByLabel('E-mail').fill(email)
  await page.getByLabel('City').fill('Arlington')
  await page.getByLabel('What is it about?').fill('Compilers\nand more')
  await page.getByLabel('How did you find us?').selectOption('Phone')
  await page.getByLabel('Delivery').check()
  await page.getByLabel('I agree to be called').check()
  return email
}

/** Returns the person with this address and its lead. */
async function leadOf(email: string): Promise<any> {
  const [person] = (await call('GET', `/contacts/persons?email=${email}`)).data
  const [lead] = person ? (await call('GET', `/leads?person_id=${person.id}`)).data : []
  return { person, lead }
}

/** Opens a page that may request any host, and records its console messages. */
async function watched() {
  const { context, complaints } = await watchedContext(browser, server.url)
  await context.unroute('**/*')
  return { context, complaints, page: await context.newPage() }
}

describe('the page of a form', { timeout: patienceMs }, () => {
  it('is filled in and sent, says what is wrong beside the field, and then thank you', async () => {
    const { page, context, complaints } = await watched()
    await page.goto(formUrl(await makeForm()))
    const email = await fill(page)
    await page.getByLabel('Telephone').fill('call me')
    await shoot(page, 'form')
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByText('Must be a telephone number:').waitFor()
    const focused = await page.evaluate(() => (document.activeElement as HTMLInputElement | null)?.name)
    expect(focused).toBe('persons[contact_numbers][0][value]')
    await shoot(page, 'refused')
    await page.getByLabel('Telephone').fill('+1 202 555 0100')
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByRole('status').waitFor()
    expect(await page.getByRole('status').textContent()).toBe('Thank <you>.')
    await shoot(page, 'thanks')
    const { person, lead } = await leadOf(email)
    expect(person).toMatchObject({
      name: 'Grace Hopper',
      custom_attributes: { agrees: true, home: { city: 'Arlington' } },
    })
    expect(lead).toMatchObject({ description: 'Compilers\nand more', source: { name: 'Phone' } })
    expect(lead.custom_attributes.topics).toHaveLength(1)
    // Chromium logs the 422 reply to the console.
    expect(complaints.filter((each) => !each.includes('422'))).toEqual([])
    await context.close()
  })

  it('works without script', async () => {
    const context = await browser.newContext({ javaScriptEnabled: false })
    const page = await context.newPage()
    await page.goto(formUrl(await makeForm()))
    const email = await fill(page)
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByRole('status').waitFor()
    expect(await page.getByRole('status').textContent()).toBe('Thank <you>.')
    expect((await leadOf(email)).lead.title).toBe('Lead From Web Form')
    await context.close()
  })

  it('goes on where it is told to', async () => {
    const next = `${hostUrl}/thanks`
    const { page, context } = await watched()
    await page.goto(formUrl(await makeForm({ submit_success_action: 'redirect', submit_success_content: next })))
    await fill(page)
    await page.getByRole('button', { name: 'Send' }).click()
    await page.waitForURL(next)
    await context.close()
  })

  it('has the colors of the form, and a hidden trap field', async () => {
    const { page, context } = await watched()
    const colors = {
      background_color: '#102030',
      form_background_color: '#1e3450',
      form_title_color: '#ffcc66',
      form_submit_button_color: '#ffcc66',
      attribute_label_color: '#cfe0f5',
    }
    await page.goto(formUrl(await makeForm(colors)))
    await shoot(page, 'colors')
    expect(await page.evaluate(() => getComputedStyle(document.body).backgroundColor)).toBe('rgb(16, 32, 48)')
    expect(await page.locator('h1').evaluate((each) => getComputedStyle(each).color)).toBe('rgb(255, 204, 102)')
    const trap = await page.locator('[name=website]').boundingBox()
    expect((trap?.x ?? 0) < 0).toBe(true)
    await page.setViewportSize({ width: 360, height: 740 })
    const { wide, room } = await page.evaluate(() => ({ wide: document.documentElement.scrollWidth, room: innerWidth }))
    expect(wide).toBeLessThanOrEqual(room)
    await shoot(page, 'narrow')
    await context.close()
  })
})

describe('the script of a form', { timeout: patienceMs }, () => {
  it('draws the form where it stands in a page of another origin with a strict policy, and sends it', async () => {
    const { page, context, complaints } = await watched()
    await page.goto(`${hostUrl}/?form=${await makeForm()}`)
    await page.getByRole('button', { name: 'Send' }).waitFor()
    const tops = await page.evaluate(() =>
      Array.from(document.body.querySelectorAll('h2, div')).map((each) => each.getBoundingClientRect().top),
    )
    expect(tops).toEqual([...tops].sort((one, other) => one - other))
    const email = await fill(page)
    await shoot(page, 'embedded')
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByRole('status').waitFor()
    expect(await page.getByRole('status').textContent()).toBe('Thank <you>.')
    expect((await leadOf(email)).person.name).toBe('Grace Hopper')
    expect(complaints.filter((each) => !each.includes('favicon'))).toEqual([])
    await context.close()
  })
})

/** Saves a screenshot if ACCORD_TEST_PICTURES is set. */
async function shoot(page: Page, name: string): Promise<void> {
  const folder = process.env.ACCORD_TEST_PICTURES
  if (folder) await page.screenshot({ path: `${folder}/web-form-${name}.png`, fullPage: true })
}
