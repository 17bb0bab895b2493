// Measures the search of the documentation in the page, from the input to the results in the DOM.
import type { Page } from 'playwright-core'

/** Queries for names, words, a parameter, a problem code and a text without results. */
const queries = ['l', 'le', 'createLead', 'move stage', 'lead_value[gte]', 'version_mismatch', 'webhooks', 'zzzz']

/** Returns the time of each query in milliseconds. The page must show the reference. */
export async function searchTimes(page: Page): Promise<number[]> {
  await page.locator('#search').focus()
  await page.locator('#search').fill('a')
  await page.locator('#result-0').waitFor()
  return page.evaluate(async (queries) => {
    const [input, results] = [document.querySelector('#search'), document.querySelector('#options')]
    if (!(input instanceof HTMLInputElement) || !results) throw new Error('The page has no search.')
    const times: number[] = []
    for (const query of queries) {
      await new Promise((resolve) => setTimeout(resolve, 20))
      const shown = new Promise<void>((resolve) => {
        const observer = new MutationObserver(() => {
          observer.disconnect()
          resolve()
        })
        observer.observe(results, { childList: true })
      })
      const began = performance.now()
      input.value = query
      input.dispatchEvent(new Event('input', { bubbles: true }))
      await shown
      times.push(performance.now() - began)
    }
    return times
  }, queries)
}
