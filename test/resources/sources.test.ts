// Rules of sources that the generated contract tests do not check.
import { describe, expect, it } from 'vitest'
import { useNewServers } from '../support/using.ts'

const server = useNewServers()

describe('listSources', () => {
  it('answers the seeded sources, newest first, in the pagination envelope', async () => {
    const { status, body } = await server.admin.get('/sources')
    expect(status).toBe(200)
    expect(body.data.map((source: { name: string }) => source.name)).toEqual([
      'Direct',
      'Phone',
      'Web Form',
      'Web',
      'Email',
    ])
    expect(body.meta).toMatchObject({ current_page: 1, last_page: 1, per_page: 10, total: 5, from: 1, to: 5 })
    expect(body.links.next).toBeNull()
  })
})

describe('createSource', () => {
  it('creates a source, says where it is, and fires its pair of events', async () => {
    const { status, body, headers } = await server.admin.post('/sources', { name: ' Trade fair ' })
    expect(status).toBe(201)
    expect(body).toMatchObject({
      data: { id: expect.any(Number), name: 'Trade fair', version: 1, leads_count: 0 },
      message: 'Source created.',
    })
    expect(headers.location).toBe(`http://localhost:80/api/admin/sources/${body.data.id}`)
    expect(headers.etag).toBe('"1"')
    expect(server.events()).toEqual(['settings.source.create.before', 'settings.source.create.after'])
  })

  it('refuses a name that differs only in case with 409, names the other source and changes nothing', async () => {
    const { status, body } = await server.admin.post('/sources', { name: 'wEB' })
    expect(status).toBe(409)
    expect(body).toMatchObject({
      code: 'unique_violation',
      conflicts: [{ entity_type: 'sources', id: 2, field: 'name' }],
    })
    expect(server.events()).toEqual([])
    expect((await server.admin.get('/sources')).body.meta.total).toBe(5)
  })
})
