// Creates a few dozen records of every type through the API, with many links and nulls and a fixed
// seed, for tests of pages, sorts and filters.
import type { Caller, TestServer } from '../support/app.ts'
import { given } from '../support/given.ts'

/** Returns a generator of numbers from 0 to below `limit`, the same in every run. */
function dice(seed: number): (limit: number) => number {
  let state = seed
  return (limit) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
    return Math.floor((state / 0x80000000) * limit)
  }
}

const words = ['acme', 'Acme', 'ÉTÉ', 'été', 'Zeta', '100%', 'a_b', 'B-side']
export const lists = [
  'leads',
  'quotes',
  'persons',
  'organizations',
  'products',
  'activities',
  'tags',
  'sources',
] as const

export async function fill(server: TestServer, count = 23): Promise<void> {
  const make = given(server.admin)
  const roll = dice(7)
  const pick = <T>(from: readonly T[]): T => from[roll(from.length)] as T
  const maybe = <T>(value: T): T | null => (roll(3) === 0 ? null : value)
  const organizations = [await make.organization({ name: 'Acme' }), await make.organization({ name: 'acme Paris' })]
  const people: { id: number }[] = []
  const goods: { id: number }[] = []
  for (let n = 0; n < count; n++) {
    server.clock.advanceMs(roll(2) * 60_000)
    await make.tag({ name: `${pick(words)} ${n}`, color: pick(['#0E90D9', '#D92D20']) })
    await make.source({ name: `${pick(words)} ${n}` })
    goods.push(await make.product({ name: pick(words), price: roll(4) + 0.1, quantity: roll(3) }))
    await make.organization({ user_id: maybe(1) })
    people.push(
      await make.person({
        name: pick(words),
        job_title: maybe(pick(words)),
        organization_id: maybe(pick(organizations).id),
        user_id: maybe(1),
      }),
    )
    await make.activity({ type: 'note', title: maybe(pick(words)), comment: pick(words), user_id: maybe(1) })
    await make.lead({
      title: pick(words),
      lead_value: roll(3) * 1000 + 0.25,
      person_id: maybe(pick(people).id),
      user_id: maybe(1),
      lead_source_id: roll(3) + 1,
      lead_pipeline_stage_id: roll(6) + 1,
      expected_close_date: maybe(`2026-04-0${roll(5) + 1}`),
    })
    await make.quote({
      subject: pick(words),
      person_id: pick(people).id,
      discount_percent: roll(2) * 10,
      items: [{ product_id: pick(goods).id, quantity: roll(3) + 0.5, tax_percent: roll(2) * 19 }],
      expiry_date: `2026-04-0${roll(5) + 1}`,
    })
  }
  server.events()
}

export interface Page {
  data: Record<string, any>[]
  links: Record<'first' | 'last' | 'prev' | 'next', string | null>
  meta: { total: number | null; next_cursor?: string | null; prev_cursor?: string | null }
}

export const pathOf = (list: string): string =>
  ['persons', 'organizations'].includes(list) ? `/contacts/${list}` : `/${list}`

export async function read(caller: Caller, url: string): Promise<Page> {
  const { status, body, text } = await caller.get<Page>(url)
  if (status !== 200) throw new Error(`${url} answered ${status}: ${text}`)
  return body
}

/** Reads pages from a URL on by following a link. */
export async function follow(caller: Caller, url: string, link: 'next' | 'prev'): Promise<Page[]> {
  const pages: Page[] = []
  for (let at: string | null = url; at !== null && pages.length < 500; at = pages.at(-1)?.links[link] ?? null) {
    pages.push(await read(caller, at.startsWith('http') ? `/${new URL(at).pathname}${new URL(at).search}` : at))
  }
  return pages
}
