// An erasure reaches the persons that were merged into the person, and the answers of bulk writes.
import { sql } from 'kysely'
import { expect, it } from 'vitest'
import { useServer } from '../support/using.ts'

const server = useServer()
const people = '/contacts/persons'
const canaries = ['zqonecanary', 'zqtwocanary', 'zqthreecanary', 'zqfourcanary']

/** Returns `table canary` for each place in the database that has a canary. */
async function traces(): Promise<string[]> {
  const { db } = server.store
  const tables = (await db.introspection.getTables()).map(({ name }) => name).filter((name) => !/_fts|^fts/.test(name))
  const found = new Set<string>()
  for (const table of tables) {
    const { rows } = await sql`select * from ${sql.table(table)}`.execute(db)
    const text = JSON.stringify(rows)
    for (const each of canaries) if (text.includes(each)) found.add(`${table} ${each}`)
  }
  return [...found]
}

it('of a winner leaves no trace of those merged into it, at any place of the chain', async () => {
  const ids: number[] = []
  for (const name of canaries.slice(0, 3)) {
    const body = { name: `${name} Muster`, emails: [{ value: `${name}@example.com` }], external_ids: { crm: name } }
    const { status, body: made, text } = await server.admin.post(people, body)
    expect(status, text).toBe(201)
    ids.push(made.data.id)
  }
  const [one, two, three] = ids
  for (const [winner, other] of [
    [two, one],
    [three, two],
  ])
    expect((await server.admin.post(`${people}/${winner}/merge`, { ids: [other] })).status).toBe(200)
  expect((await traces()).length).toBeGreaterThan(4)

  const path = `${people}/${one}/erase`
  const redirect = await server.admin.post(path, {})
  expect([redirect.status, redirect.headers.location]).toEqual([
    308,
    expect.stringContaining(`${people}/${three}/erase`),
  ])
  const erased = await server.admin.post(`${people}/${three}/erase`, {})
  expect(erased.status, erased.text).toBe(201)
  await server.work()
  expect(await traces()).toEqual([])
  for (const id of ids) expect((await server.admin.get(`${people}/${id}`)).status).toBe(404)
  // The addresses and ids of all three are suppressed.
  for (const name of canaries.slice(0, 3)) {
    const emails = [{ value: `${name}@example.com` }]
    expect((await server.admin.post(people, { name: 'Again', emails })).status).toBe(422)
    expect((await server.admin.put(`${people}/external/crm/${name}`, { name: 'Again', emails: [] })).status).toBe(422)
  }
})

it('replaces the person in the answers of a bulk write, which are answered again', async () => {
  const name = canaries[3]
  const line = {
    op: 'create',
    type: 'persons',
    fields: { name: `${name} Muster`, emails: [{ value: `${name}@example.com` }] },
  }
  const headers = {
    'content-type': 'application/x-ndjson',
    accept: 'application/x-ndjson',
    'idempotency-key': 'erase-bulk',
  }
  const body = `${JSON.stringify(line)}\n${JSON.stringify({ ...line, fields: { ...line.fields, emails: [] } })}\n`
  const first = await server.admin.post('/bulk', body, { headers })
  const [made, warned] = first.text
    .trim()
    .split('\n')
    .map((text) => JSON.parse(text))
  expect([made.status, warned.status], first.text).toEqual([201, 201])
  for (const { id } of [made, warned]) expect((await server.admin.post(`${people}/${id}/erase`, {})).status).toBe(201)
  await server.work()
  expect(await traces()).toEqual([])
  const again = await server.admin.post('/bulk', body, { headers })
  expect(
    again.text
      .trim()
      .split('\n')
      .map((text) => JSON.parse(text).id),
  ).toEqual([made.id, warned.id])
  expect(again.text).not.toContain(name)
})

it('leaves the keys of others, by which they are still found as duplicates', async () => {
  const person = async (value: string) => (await server.admin.post(people, { name: 'Ina', emails: [{ value }] })).body
  const [erased, other] = [await person('ina@example.net'), await person('ina+crm@example.net')]
  expect((await server.admin.post(`${people}/${erased.data.id}/erase`, {})).status).toBe(201)
  const warned = await person('ina+shop@example.net')
  expect(warned.meta.warnings).toMatchObject([{ message: expect.stringContaining(`person ${other.data.id} has`) }])
})
