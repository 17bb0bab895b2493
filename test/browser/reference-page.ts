// Opens the reference page of the documentation and its operations.
import type { Locator, Page, Response } from 'playwright-core'
import { expect } from 'vitest'
import type { Watched } from './chromium.ts'

/** Opens the reference page. Retries when the busy server refuses it or its data with 503. */
export async function openReference(watched: Watched, page: Page, url: string, anchor = ''): Promise<void> {
  for (let attempt = 0; attempt < 8; attempt++) {
    let isRefused = false
    const look = (response: Response) => {
      // The files of the page are never refused.
      if (/\/(files|static)\//.test(response.url())) expect([200, 304], response.url()).toContain(response.status())
      if (response.status() === 503) isRefused = true
    }
    page.on('response', look)
    await page.goto(`${url}/api/admin/documentation${anchor}`, { waitUntil: 'load' })
    page.off('response', look)
    if (!isRefused) break
    watched.complaints.length = 0
    await page.goto('about:blank')
    await page.waitForTimeout(1500)
  }
  await page.locator('.opblock-tag').first().waitFor()
}

export const operationOn = (page: Page, tag: string, id: string): Locator =>
  page.locator(`#operations-${tag.replace(/ /g, '_')}-${id}`)

/** Opens an operation by its deep link, and waits until it is rendered. */
export async function opened(watched: Watched, page: Page, url: string, tag: string, id: string): Promise<Locator> {
  await openReference(watched, page, url, `#/${encodeURIComponent(tag)}/${id}`)
  const block = operationOn(page, tag, id)
  await block.locator('.errors').waitFor()
  return block
}
