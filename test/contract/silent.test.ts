// Nothing that a client sends is dropped silently: what the server does not use is refused, or named
// in a warning.
import { describe, expect, it } from 'vitest'
import { fact, facts, follow, parametersOf, typesOf } from '../support/schema.ts'
import { request } from './support.ts'
import { useWorld } from './use-world.ts'

const world = useWorld()
const lists = facts.filter(([, { method, servedBy }]) => method === 'get' && servedBy === 'handler').map(([id]) => id)

/** The filters of an operation that are lists of ids, numbers or dates. */
const filtersOf = (id: string): string[] =>
  parametersOf(id, 'query').flatMap(({ name, schema }) => {
    const items = follow(follow(schema).items)
    return ['integer', 'number'].some((type) => typesOf(items).includes(type)) || items.format === 'date' ? [name] : []
  })

describe.each(lists.filter((id) => filtersOf(id).length > 0))('%s', (id) => {
  it('refuses a filter without a value, which would select everything', async () => {
    for (const name of filtersOf(id))
      for (const [value, sentence] of [
        ['', 'Must not be empty.'],
        ['1,,2', 'Must not have an empty entry.'],
      ]) {
        const { status, body } = await world.server.admin.get(`/${request(world, id).url}?${name}=${value}`)
        expect.soft([name, status, body.errors?.[`query.${name}`]]).toEqual([name, 422, [sentence]])
      }
  })
})

describe('a sort key', () => {
  it.each(['title,title', 'title,-title', '-created_at,title,created_at'])('is used once: %s', async (sort) => {
    const { status, body } = await world.server.admin.get(`/leads?sort=${sort}`)
    expect([status, body.errors?.['query.sort']]).toEqual([422, [expect.stringMatching(/^Sorts by \w+ twice\.$/)]])
  })
})

describe('a key of a JSON body', () => {
  it('is refused when it is sent twice', async () => {
    const payload = '{"title":"a","title":"b","person":{"name":"c","emails":[{"value":"d@example.com","value":"e"}]}}'
    const headers = { authorization: `Bearer ${world.server.admin.token}`, 'content-type': 'application/json' }
    const reply = await world.server.inject({ method: 'POST', url: fact('createLead').path, headers, payload })
    expect(reply.statusCode).toBe(422)
    expect(reply.json().errors).toMatchObject({
      title: ['The key is sent twice.'],
      'person.emails.0.value': expect.arrayContaining(['The key is sent twice.']),
    })
  })
})
