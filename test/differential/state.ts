// Reads the data of a world through the API: the event feed and all lists.
import type { World } from '../contract/support.ts'
import { anAdministrator } from '../fuzz/aftermath.ts'
import { lists as listOperations } from '../fuzz/check.ts'
import type { Reply } from '../support/app.ts'
import { fact } from '../support/schema.ts'
import { comparable, exceptions } from './compare.ts'

const pageSize = 100

/** The lists whose pages must be equal on both engines. */
export const lists = listOperations.filter((id) => !(id in exceptions))

/** Returns all feed entries after an event as text, and the id of the last entry. */
export async function feedAfter({ server }: World, after: number): Promise<{ text: string; last: number }> {
  const caller = await server.as(await anAdministrator(server))
  let [text, last] = ['', after]
  for (;;) {
    const { text: page, body } = await caller.get(`/events?after=${last}&per_page=${pageSize}`)
    text += comparable(page)
    if (!Array.isArray(body?.data) || body.data.length === 0) return { text, last }
    last = body.meta.next_after
  }
}

/** Returns the pages of a list as texts. */
export async function listInFull({ server }: World, id: string): Promise<string[]> {
  const caller = await server.as(await anAdministrator(server))
  const pages: string[] = []
  for (let next: string | null = `/${fact(id).path}?per_page=${pageSize}`; next !== null; ) {
    const page: Reply<{ links?: { next?: string | null } }> = await caller.get(next)
    pages.push(comparable(page.text))
    next = page.body?.links?.next?.replace(/^https?:\/\/[^/]+/, '/') ?? null
  }
  return pages
}
