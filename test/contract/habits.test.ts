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

describe('a key of a body', () => {
  const suggested = (meant: string) => `Unknown field. Did you mean \`${meant}\`?`

  it.each([
    ['/leads', 'amount', 'lead_value'],
    ['/leads', 'leadValue', 'lead_value'],
    ['/leads', 'name', 'title'],
    ['/leads', 'owner', 'user_id'],
    ['/contacts/persons', 'company', 'organization_id'],
    ['/leads', 'contact_id', 'person_id'],
    ['/leads', 'phase', 'lead_pipeline_stage_id'],
    ['/leads', 'pipelineId', 'lead_pipeline_id'],
    ['/leads', 'source_id', 'lead_source_id'],
    ['/leads', 'labels', 'tag_ids'],
    ['/leads', 'custom_fields', 'custom_attributes'],
    ['/leads', 'external_id', 'external_ids'],
    ['/contacts/persons', 'phone', 'contact_numbers'],
    ['/contacts/persons', 'email', 'emails'],
    ['/contacts/persons', 'first_name', 'name'],
    ['/products', 'unit_price', 'price'],
    ['/activities', 'start_date', 'schedule_from'],
  ])('of %s that others call %s is named: %s', async (path, word, meant) => {
    const { status, body } = await server.admin.post(path, { [word]: 'a' })
    expect([status, body.errors[word]]).toEqual([422, [suggested(meant)]])
  })

  it('with an operator of a query parameter is shown in the form of a condition', async () => {
    const { body } = await server.admin.post('/leads/query', { where: { 'lead_value[gte]': 1 } })
    expect(body.errors).toEqual({ 'where.lead_value[gte]': [suggested('"lead_value": {"gte": …}')] })
  })

  it('may be a custom attribute, whose place is said', async () => {
    const { body } = await server.admin.post('/leads', { title: 'A', industry: 'x' })
    expect(body.errors).toEqual({ industry: ['Unknown field. Custom attributes stand in `custom_attributes`.'] })
    const list = await server.admin.get('/leads', { query: { 'industry[not]': '1' } })
    const sentence = 'Unknown parameter. A custom attribute is filtered by `custom_attributes[code]`.'
    expect(list.body.errors).toEqual({ 'query.industry[not]': [sentence] })
  })

  it.each(['a@example.com', 'Ada', true, ['a']])(
    'that names a record takes no %j, and the error shows how',
    async (sent) => {
      const { body } = await server.admin.post('/leads', { title: 'A', person_id: sent })
      expect(body.errors).toEqual({
        person_id: [
          'Must be an id, or an object with email or external_id or name, such as {"email":"ada@example.com"}.',
        ],
      })
    },
  )
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
