// A search of the documentation without results offers the guides.
import { expect, it } from 'vitest'
import { guides } from '../../src/http/docs/guides.ts'
import { listeningServer } from '../support/listening.ts'
import { until } from '../support/until.ts'
import { useOne } from '../support/using.ts'
import { browserTests, openBrowser, patienceMs, watchedContext } from './chromium.ts'

const browser = useOne(openBrowser)
const server = useOne(listeningServer)

browserTests.describe('a search without results', { timeout: patienceMs }, () => {
  it('says so and offers the guides, also with the keyboard', async () => {
    const { context, complaints } = await watchedContext(browser, server.url)
    const page = await context.newPage()
    await page.goto(`${server.url}/api/admin/documentation/guides/errors`)
    await page.locator('#search').fill('zzzzqqq')
    await until(async () => (await page.locator('#results').textContent())?.includes('Nothing found') ?? false)
    expect(await page.locator('#results [role=option]').count()).toBe(guides.length)
    await page.keyboard.press('Enter')
    await page.waitForURL('**/guides/quick-start')
    expect(complaints).toEqual([])
    await context.close()
  })
})
