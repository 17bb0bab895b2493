// A small integration without type casts: it signs in, writes with idempotency keys, reads lists,
// receives webhooks and follows the event feed.
import createClient from 'openapi-fetch'
import { Webhook } from 'standardwebhooks'
import type { paths } from '../../../src/contract/schema.gen.ts'

type Media = 'application/json' | 'application/problem+json'
type Login = { email: string; password: string }
type Told = { headers: Record<string, string>; body: string }

/** Runs all steps. `url` receives the webhooks, and `told` waits for the first message. */
export async function program(baseUrl: string, who: Login, url: string, told: () => Promise<Told>) {
  const api = createClient<paths, Media>({ baseUrl, headers: { accept: 'application/json' } })
  const login = await api.POST('/api/admin/login', { body: { ...who, device_name: 'program' } })
  if (login.error) throw new Error(login.error.code)
  const authorization = `Bearer ${login.data.data.token}`
  api.use({ onRequest: ({ request }) => request.headers.set('authorization', authorization) })

  const refused = await api.POST('/api/admin/leads', { body: { title: '', lead_value: 1 } })
  const reason = refused.error && [refused.error.code, ...Object.keys(refused.error.errors ?? {})]

  const hook = await api.POST('/api/admin/settings/webhooks', {
    body: { name: 'Program', url, events: ['lead.create.after'] },
  })
  if (hook.error) throw new Error(hook.error.message)

  // If the reply to the first request is lost, a second request with the same key gets the same
  // reply.
  const header = { 'Idempotency-Key': crypto.randomUUID() }
  const create = () =>
    api.POST('/api/admin/leads', { params: { header }, body: { title: '40 seats', lead_value: 4821.5 } })
  const [lead, again] = [await create(), await create()]
  if (lead.error || again.error) throw new Error('The lead was refused.')

  // Reads all leads with a value of at least 1,000, page by page.
  const titles: string[] = []
  for (let cursor: string | null = ''; cursor !== null; ) cursor = await turn(cursor)
  async function turn(cursor: string): Promise<string | null> {
    const query = { 'lead_value[gte]': 1000, sort: ['-id' as const], per_page: 2, cursor }
    const page = await api.GET('/api/admin/leads', { params: { query } })
    if (page.error) throw new Error(page.error.message)
    titles.push(...page.data.data.map(({ title }) => title))
    return page.data.meta.next_cursor ?? null
  }

  // Changes only the version that was read. The second change gets 412.
  const read = { path: { id: lead.data.data.id }, header: { 'If-Match': lead.response.headers.get('etag') ?? '' } }
  const first = await api.PUT('/api/admin/leads/{id}', { params: read, body: { title: '50 seats' } })
  const late = await api.PUT('/api/admin/leads/{id}', { params: read, body: { title: '60 seats' } })

  const { headers, body } = await told()
  const event = new Webhook(hook.data.data.secret).verify(body, headers)

  const feed: string[] = []
  for (let after = 0, more = true; more; ) {
    const news = await api.GET('/api/admin/events', { params: { query: { after, entity_type: ['leads'] } } })
    if (news.error) throw new Error(news.error.message)
    feed.push(...news.data.data.map(({ name }) => name))
    ;({ next_after: after, has_more: more } = news.data.meta)
  }
  const isOnce = lead.data.data.id === again.data.data.id
  return { reason, isOnce, titles, title: first.data?.data.title, late: late.error?.code, event, feed }
}
