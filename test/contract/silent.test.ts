// Nothing that a client sends is dropped silently: what the server does not use is refused, or
// named in a warning.
import { describe, expect, it } from 'vitest'
import { bodySchema, fact, facts, follow, parametersOf, typesOf } from '../support/schema.ts'
import { request, send } from './support.ts'
import { useWorld } from './use-world.ts'

const world = useWorld()
const lists = facts.filter(([, { method, servedBy }]) => method === 'get' && servedBy === 'handler').map(([id]) => id)

/** The filters that are lists, of free texts (without `[not]`) or of other values. */
const filtersOf = (id: string, { ofTexts = false } = {}): string[] =>
  parametersOf(id, 'query').flatMap(({ name, schema }) => {
    const { items, minItems } = follow(schema)
    if (!items || minItems !== undefined) return []
    const one = follow(items)
    const isText = typesOf(one).join() === 'string' && one.enum === undefined && one.format === undefined
    return isText === ofTexts && !(isText && name.endsWith('[not]')) ? [name] : []
  })

describe.each(lists.filter((id) => filtersOf(id).length > 0))('%s', (id) => {
  it('refuses a filter without a value, often a variable that is not set', async () => {
    for (const name of filtersOf(id))
      for (const [value, sentence] of [
        ['', 'Must not be empty.'],
        ['1,,2', 'Must not have an empty entry.'],
      ]) {
        const { status, body } = await world.server.admin.get(`/${request(world, id).url}?${name}=${value}`)
        expect.soft([name, status]).toEqual([name, 422])
        expect.soft(body.errors?.[`query.${name}`]).toContain(sentence)
      }
  })
})

const byText = lists.filter((id) => id.startsWith('list') && filtersOf(id, { ofTexts: true }).length > 0)

describe.each(byText)('%s', (id) => {
  it('finds nothing by an empty text', async () => {
    const { url } = request(world, id)
    for (const name of filtersOf(id, { ofTexts: true })) {
      const { status, body } = await world.server.admin.get(`/${url}?${name}=`)
      expect.soft([name, status, body.data]).toEqual([name, 200, []])
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

const updates = facts.filter(([, { method, ignorable }]) => method === 'put' && ignorable !== null).map(([id]) => id)
const showOf = (id: string): string | undefined =>
  facts.find(([, { method, path }]) => method === 'get' && path === fact(id).path)?.[0]

describe.each(updates.filter((id) => showOf(id) !== undefined))('%s', (id) => {
  it('names each ignored read-only key that differs from the record, and no other', async () => {
    const { url } = request(world, id)
    const put = async (body: object) => {
      await world.server.rewind()
      return send(world, id, { method: 'PUT', url, body })
    }
    await world.server.rewind()
    const { data } = (await send(world, showOf(id) ?? '', { method: 'GET', url })).body
    if (Array.isArray(data)) return
    const same = await put(data)
    expect([same.status, same.body.meta]).toEqual([200, undefined])
    const isWritable = (key: string): boolean => bodySchema(id)?.properties?.[key] !== undefined
    // Permissions and abilities belong to the call, so the event of the account has none.
    const known = world.server.seen.at(-1)?.entity ?? {}
    const isComparable = (key: string): boolean => key in data && key in known && !isWritable(key) && key !== 'version'
    const keys = (fact(id).ignorable?.keys ?? []).filter(isComparable)
    expect(keys).not.toEqual([])
    const other = (value: unknown): unknown =>
      typeof value === 'number'
        ? value + 1
        : typeof value === 'boolean'
          ? !value
          : Array.isArray(value)
            ? [...value, 1]
            : 'other'
    const sent = Object.fromEntries(keys.map((key) => [key, other(data[key])]))
    const { status, body } = await put({ ...data, ...sent })
    expect(status, JSON.stringify(body)).toBe(200)
    const fields = (body.meta?.warnings ?? []).map(({ field }: { field: string }) => field)
    expect(fields.sort()).toEqual([...keys].sort())
  })
})
