// Saved views in lists, boards, exports and queries: with what the caller sees, with the other
// filters, by cursor, and when a field of theirs is gone.
import { beforeAll, describe, expect, it } from 'vitest'
import type { Caller } from '../support/app.ts'
import { given } from '../support/given.ts'
import { useSharedServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const server = useSharedServer()
const persons = '/contacts/persons'
const organizations = '/contacts/organizations'

async function make(path: string, body: object, caller: Caller = server.admin) {
  const { status, text, body: reply } = await caller.post(path, body)
  expect(status, text).toBe(201)
  return reply.data
}
let made = 0
const view = async (type: string, where: object, caller: Caller = server.admin, more: object = {}): Promise<number> =>
  (await make('/views', { name: `View ${++made}`, type, where, ...more }, caller)).id

const titles = async (path: string, caller: Caller = server.admin): Promise<string[]> => {
  const { status, text, body } = await caller.get(path)
  expect(status, text).toBe(200)
  return body.data.map(({ title, name }: { title?: string; name?: string }) => title ?? name)
}

let ben: Caller & { id: number }
let company: number
beforeAll(async () => {
  ben = await addUser(server, 'Ben', { view: 'individual' })
  company = (await make(organizations, { name: 'Analytical' })).id
  const ada = (await make(persons, { name: 'Ada', organization_id: company })).id
  await make(persons, { name: 'Bob' })
  for (let n = 1; n <= 6; n++)
    await make('/leads', { title: `L${n}`, lead_value: n * 1000, person_id: ada, user_id: n % 2 ? ben.id : 1 })
})

describe('the parameter view', () => {
  it('selects the records that meet it and the other filters', async () => {
    const id = await view('leads', { lead_value: { gte: 3000 } })
    expect(await titles(`/leads?view=${id}&sort=id`)).toEqual(['L3', 'L4', 'L5', 'L6'])
    expect(await titles(`/leads?view=${id}&sort=id&user_id=${ben.id}&lead_value[lte]=4000`)).toEqual(['L3'])
    expect(await titles(`/leads?view=${id}&q=L5`)).toEqual(['L5'])
    expect(await titles(`/leads?view=${id}&title[not]=L4&sort=-id`)).toEqual(['L6', 'L5', 'L3'])
    expect(await titles(`${organizations}/${company}/leads?view=${id}&sort=id`)).toEqual(['L3', 'L4', 'L5', 'L6'])
    const people = await view('persons', { organization: { name: { starts_with: 'ana' } } })
    expect(await titles(`${persons}?view=${people}`)).toEqual(['Ada'])
    expect(await titles(`${organizations}/${company}/persons?view=${people}`)).toEqual(['Ada'])
    const companies = await view('organizations', { not: [{ name: 'Analytical' }] })
    expect(await titles(`${organizations}?view=${companies}`)).toEqual([])
  })

  it.each([
    ['quotes', { subject: { starts_with: 'wanted' } }, { subject: 'Wanted' }, 'quote'],
    ['products', { name: { contains: 'wanted' } }, { name: 'Wanted' }, 'product'],
    ['activities', {}, {}, 'activity'],
    ['emails', { person: { name: 'Ada' } }, {}, 'email'],
  ] as const)('selects %s in lists, queries and exports', async (type, where, body, noun) => {
    const letter = { subject: 'Wanted', html: '<p>Hi</p>', to: ['ada@else.test'], is_draft: true }
    const person_id = (await make(persons, { name: 'Ada' })).id
    const add = async (wanted: boolean) =>
      noun === 'email'
        ? await make('/emails', { ...letter, ...(wanted && { person_id }) })
        : await given(server.admin)[noun](wanted ? body : {})
    await add(false)
    const { id: wanted } = await add(true)
    const id = await view(type, noun === 'activity' ? { id: { in: [wanted] } } : where)
    const other = await view('leads', { status: 1 })
    const ids = async (call: ReturnType<Caller['get']>) => {
      const { status, text, body } = await call
      expect(status, text).toBe(200)
      return (body as { data: { id: number }[] }).data.map(({ id }) => id)
    }
    expect(await ids(server.admin.get(`/${type}?view=${id}`))).toEqual([wanted])
    expect(await ids(server.admin.post(`/${type}/query?view=${id}`, { where: { id: { in: [wanted] } } }))).toEqual([
      wanted,
    ])
    expect((await server.admin.get(`/${type}?view=${other}`)).status).toBe(422)
    if (noun === 'email') return
    const { status, text } = await server.admin.get(`/${type}/export?view=${id}`)
    expect([
      status,
      text
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).id),
    ]).toEqual([200, [wanted]])
  })

  it('goes on by cursor, with links that name the view', async () => {
    const id = await view('leads', { lead_value: { gte: 2000 } })
    const seen: string[] = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const path: string = `/leads?view=${id}&per_page=2&sort=lead_value&cursor=${cursor}`
      const { body } = await server.admin.get(path)
      seen.push(...body.data.map(({ title }: { title: string }) => title))
      cursor = body.meta.next_cursor
      if (body.links.next) expect(body.links.next).toContain(`view=${id}`)
    }
    expect(seen).toEqual(['L2', 'L3', 'L4', 'L5', 'L6'])
  })

  it('works on the board, with its sums', async () => {
    const id = await view('leads', { title: { in: ['L1', 'L2'] } })
    const { body } = await server.admin.get(`/leads/kanban?view=${id}`)
    expect(body.meta).toEqual({ total: 2, lead_value: 3000 })
    const [first] = body.data
    expect(first.leads.data.map(({ title }: { title: string }) => title).sort()).toEqual(['L1', 'L2'])
  })

  it.each(['ndjson', 'csv', 'xlsx'])('works in an export as %s, whose event names the view', async (format) => {
    const id = await view('leads', { title: 'L5' })
    server.events()
    const reply = await server.admin.get(`/leads/export?view=${id}&format=${format}`)
    expect(reply.status).toBe(200)
    if (format !== 'xlsx') {
      expect(reply.text).toContain('L5')
      expect(reply.text).not.toContain('L4')
    }
    expect(server.seen.at(-1)).toMatchObject({ entity: { entity_type: 'leads', filters: { view: id } } })
    for (const path of [persons, organizations])
      expect((await server.admin.get(`${path}/export?view=${id}&format=csv`)).status).toBe(422)
  })

  it('is added to the `where` of a query', async () => {
    const id = await view('leads', { lead_value: { gte: 5000 } })
    const ask = async (where: object) =>
      (await server.admin.post(`/leads/query?view=${id}&sort=id`, { where })).body.data.map(
        ({ title }: { title: string }) => title,
      )
    expect([await ask({}), await ask({ title: { in: ['L1', 'L6'] } })]).toEqual([['L5', 'L6'], ['L6']])
  })

  it('shows only what the caller sees, and not what the owner sees', async () => {
    const group = (await make('/settings/groups', { name: 'Team', user_ids: [ben.id] })).id
    const where = { person: { name: 'Ada' } }
    const id = await view('leads', where, server.admin, { group_ids: [group] })
    expect(await titles(`/leads?view=${id}&sort=id`)).toHaveLength(6)
    const eve = await addUser(server, 'Eve', { view: 'individual' })
    const mine = await make('/leads', { title: 'Own', lead_value: 1, user_id: ben.id })
    expect(await titles(`/leads?view=${id}&sort=id`, ben)).toEqual(['L1', 'L3', 'L5'])
    expect(mine.title).toBe('Own')
    const unseen = await eve.get(`/leads?view=${id}`)
    expect([unseen.status, unseen.body.errors]).toEqual([422, { 'query.view': [`No view has id ${id}.`] }])
  })

  it('refuses a view of another type, and a value that is not an id', async () => {
    const id = await view('persons', {})
    const { status, body } = await server.admin.get(`/leads?view=${id}`)
    expect([status, body.errors]).toEqual([422, { 'query.view': [`View ${id} selects persons, not leads.`] }])
    for (const wrong of ['0', 'x', '1,2', '9999999'])
      expect((await server.admin.get(`/leads?view=${wrong}`)).status, wrong).toBe(422)
    expect((await server.admin.get(`/leads/kanban?view=${id}`)).status).toBe(422)
    expect((await server.admin.post(`/leads/query?view=${id}`, { where: {} })).status).toBe(422)
  })

  it('follows a changed view at once, also in counted totals', async () => {
    const id = await view('leads', { title: 'L1' })
    const total = async () => (await server.admin.get(`/leads?view=${id}`)).body.meta.total
    expect(await total()).toBe(1)
    await server.admin.put(`/views/${id}`, { where: { title: { in: ['L1', 'L2', 'L3'] } } })
    expect(await total()).toBe(3)
  })
})

describe('a custom attribute of a view', () => {
  it('may be renamed; when it is deleted, lists name the view and the field', async () => {
    const attribute = await make('/settings/attributes', {
      entity_type: 'leads',
      code: 'size',
      name: 'Size',
      type: 'number',
    })
    await make('/leads', { title: 'Sized', lead_value: 1, custom_attributes: { size: 40 } })
    const id = await view('leads', { not: [{ custom_attributes: { size: { is_empty: true } } }] }, server.admin, {
      name: 'Sized leads',
    })
    expect(await titles(`/leads?view=${id}`)).toEqual(['Sized'])
    await server.admin.put(`/settings/attributes/${attribute.id}`, { name: 'Seats' })
    expect(await titles(`/leads?view=${id}`)).toEqual(['Sized'])
    expect((await server.admin.delete(`/settings/attributes/${attribute.id}`)).status).toBe(200)
    for (const path of ['/leads', '/leads/kanban', '/leads/export']) {
      const { status, body } = await server.admin.get(`${path}?view=${id}`)
      expect([status, body.errors]).toEqual([
        422,
        {
          'query.view': [
            'The view Sized leads no longer works. where.not.0.custom_attributes.size: Unknown attribute.',
          ],
        },
      ])
    }
    expect((await server.admin.get(`/views/${id}`)).status).toBe(200)
  })
})
