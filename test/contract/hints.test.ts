// Refusals that lead somewhere: to the path that exists, the filter of a related record, the form
// of an entry, and the list of ids.
import { describe, expect, it } from 'vitest'
import { useSharedServer } from '../support/using.ts'

const server = useSharedServer()

const sentenceAt = async (method: 'GET' | 'POST' | 'PUT', path: string): Promise<[number, string]> => {
  const headers = { authorization: `Bearer ${server.admin.token}`, accept: 'application/json' }
  const { statusCode, body } = await server.inject({ method, url: path, headers })
  return [statusCode, JSON.parse(body).detail]
}

describe('a path that does not exist', () => {
  it.each([
    ['GET', '/api/admin/lead', 'GET /api/admin/leads?'],
    ['GET', '/api/admin/persons', 'GET /api/admin/contacts/persons?'],
    ['GET', '/api/admin/persons/7', 'GET /api/admin/contacts/persons/{id}?'],
    ['GET', '/leads/7/activities', 'GET /api/admin/leads/{id}/activities?'],
    ['PUT', '/api/admin/pipeline/1', 'PUT /api/admin/pipelines/{id}?'],
    ['GET', '/api/admin/settings/pipelines', 'GET /api/admin/pipelines?'],
    ['POST', '/api/admin/leads/qeury?page=2', 'POST /api/admin/leads/query?'],
  ] as const)('is answered with the similar one: %s %s', async (method, path, meant) => {
    const [status, detail] = await sentenceAt(method, path)
    expect([404, 405]).toContain(status)
    expect(detail).toMatch(/ Did you mean /)
    expect(detail.split(' Did you mean ')[1]).toBe(meant)
  })

  it.each([
    ['POST', '/api/admin/leads/mass-create'],
    ['POST', '/api/admin/leads/bulk'],
  ] as const)('leads to the bulk operation: %s %s', async (method, path) => {
    const [status, detail] = await sentenceAt(method, path)
    expect([status, detail]).toEqual([
      405,
      'This path does not know POST. It knows GET, PUT, DELETE. POST /api/admin/leads writes one record, and ' +
        'POST /api/admin/bulk many of all types. There is POST /api/admin/leads/mass-update and ' +
        'POST /api/admin/leads/mass-delete.',
    ])
  })

  it('leads from /create to the collection', async () => {
    const [status, detail] = await sentenceAt('POST', '/api/admin/contacts/persons/create')
    expect([status, detail]).toEqual([
      405,
      expect.stringMatching(/ POST \/api\/admin\/contacts\/persons creates a record\.$/),
    ])
  })

  it.each(['/api/admin/no/such/thing', '/api/admin/leads/', `/api/admin/${'x'.repeat(300)}`, '/%E0%A4%A', '/'])(
    'has no invented suggestion: POST %s',
    async (path) => {
      const [, detail] = await sentenceAt('POST', path)
      expect(detail).not.toContain('Did you mean')
    },
  )
})

describe('a filter of a related record that does not exist', () => {
  it.each([
    ['/leads', 'person_name', 'person_id', ' POST /api/admin/leads/query takes conditions on related records.'],
    ['/leads', 'person.email', 'person_id', ' POST /api/admin/leads/query takes conditions on related records.'],
    ['/leads', 'stage', 'lead_pipeline_stage_id', ' POST /api/admin/leads/query takes conditions on related records.'],
    ['/quotes', 'personName', 'person_id', ' POST /api/admin/quotes/query takes conditions on related records.'],
  ])('of %s is answered with the filter by id, and the query: %s', async (path, word, meant, more) => {
    const { status, body } = await server.admin.get(path, { query: { [word]: 'Ada' } })
    expect([status, body.errors]).toEqual([
      422,
      { [`query.${word}`]: [`Unknown parameter. Did you mean \`${meant}\`?${more}`] },
    ])
  })
})

describe('a text in the place of an object', () => {
  it('is refused with the form of the entry: createPerson emails', async () => {
    const { status, body } = await server.admin.post('/contacts/persons', { name: 'Ada', emails: ['a@example.com'] })
    expect([status, body.errors]).toEqual([
      422,
      { 'emails.0': ['Must be an object such as {"value":"ada@example.com","label":"work"}.'] },
    ])
  })
})

describe('a mass operation', () => {
  it('of unknown ids says where the ids are', async () => {
    const { status, body } = await server.admin.post('/leads/mass-delete', { ids: [901, 902, 903, 904, 905, 906] })
    expect([status, body.code, body.detail]).toEqual([
      422,
      'mass_failed',
      'None of the records was changed: you can see no lead with the ids 901, 902, 903, 904, 905, nor 1 more. ' +
        'GET /api/admin/leads lists the ids.',
    ])
    expect(body.failed).toHaveLength(6)
  })

  it.each(['indices', 'lead_ids', 'id'])('takes `ids`, which an error says of %s', async (word) => {
    const { body } = await server.admin.post('/leads/mass-delete', { [word]: [1] })
    expect(body.errors).toMatchObject({ [word]: ['Unknown field. Did you mean `ids`?'] })
  })
})
