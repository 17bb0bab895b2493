// Query parameters in the style of other APIs: the error names the parameter of this API.
import { describe, expect, it } from 'vitest'
import { useSharedServer } from '../support/using.ts'

const server = useSharedServer()

describe('a parameter of the query', () => {
  it.each([
    ['limit', 'per_page'],
    ['page_size', 'per_page'],
    ['perPage', 'per_page'],
    ['offset', 'page'],
    ['page[number]', 'page'],
    ['starting_after', 'cursor'],
    ['expand', 'include'],
    ['include[]', 'include'],
    ['select', 'fields'],
    ['order_by', 'sort'],
    ['sort_by', 'sort'],
    ['search', 'q'],
    ['filter', 'q'],
    ['filter[user_id]', 'user_id'],
    ['filter[lead_value][gte]', 'lead_value[gte]'],
    ['lead_value__gte', 'lead_value[gte]'],
    ['userId', 'user_id'],
    ['updated_since', 'updated_at[gte]'],
    ['titel', 'title'],
  ])('that others call %s is named: %s', async (word, meant) => {
    const { status, body } = await server.admin.get('/leads', { query: { [word]: '1' } })
    expect([status, body.errors]).toEqual([
      422,
      { [`query.${word}`]: [`Unknown parameter. Did you mean \`${meant}\`?`] },
    ])
  })

  it('is not suggested where there is none of the kind', async () => {
    const { body } = await server.admin.get('/leads/1', { query: { limit: '1' } })
    expect(body.errors).toEqual({ 'query.limit': ['Unknown parameter.'] })
  })
})

describe('a method', () => {
  it.each([
    ['PATCH', '/leads/1', 'It knows GET, PUT, DELETE. Did you mean PUT? It changes what is sent and leaves the rest.'],
    ['PUT', '/leads', 'It knows GET, POST.'],
    ['PATCH', '/leads', 'It knows GET, POST.'],
    ['POST', '/leads/1', 'It knows GET, PUT, DELETE.'],
  ] as const)('that a path does not know is answered with those it knows: %s %s', async (method, path, sentence) => {
    const reply = await server.inject({
      method,
      url: `/api/admin${path}`,
      headers: { authorization: `Bearer ${server.admin.token}` },
    })
    expect([reply.statusCode, reply.json().code, reply.json().message]).toEqual([
      405,
      'method_not_allowed',
      `This path does not know ${method}. ${sentence}`,
    ])
  })
})

describe('listLeads', () => {
  it('says with a cursor where the next page begins, and says null on the last', async () => {
    for (const title of ['a', 'b', 'c']) await server.admin.post('/leads', { title, lead_value: 1 })
    const seen: string[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const query: Record<string, string> = { cursor, per_page: '2', sort: 'title' }
      const { body } = await server.admin.get('/leads', { query })
      seen.push(...body.data.map(({ title }: { title: string }) => title))
      expect(body.meta).toHaveProperty('next_cursor')
      cursor = body.meta.next_cursor
    }
    expect(seen).toEqual(['a', 'b', 'c'])
  })
})
