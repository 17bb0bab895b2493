// A write of a record that many others quote leaves their search documents to jobs: the new name,
// the deletion and the restore of an organization with many persons.
import { describe, expect, it } from 'vitest'
import { given } from '../support/given.ts'
import { useSharedServer } from '../support/using.ts'

const count = 250

const server = useSharedServer()

/** Inserts persons of an organization directly, because the API would take long. */
async function insertPersons(organizationId: number): Promise<void> {
  const { db } = server.store
  const { id } = await given(server.admin).person({ name: 'One of many', organization_id: organizationId })
  const { id: _id, ...row } = await db.selectFrom('persons').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
  for (let made = 1; made < count; made += 50) {
    const rows = Array.from({ length: Math.min(50, count - made) }, () => row)
    await db.insertInto('persons').values(rows).execute()
  }
  await server.app.services.searchIndex.rebuildOnline(server.store)
}

/** Returns the number of persons that a search finds. */
async function found(word: string): Promise<number> {
  const { body } = await server.admin.get(`/contacts/persons?q=${word}&per_page=1`)
  return body.meta.total
}

describe('an organization with many persons', () => {
  it('is renamed, deleted and restored, and its persons are found by its name once the jobs have run', async () => {
    const { id } = await given(server.admin).organization({ name: 'Formername' })
    await insertPersons(id)
    expect(await found('Formername')).toBe(count)
    const path = `/contacts/organizations/${id}`
    expect((await server.admin.put(path, { name: 'Latername' })).status).toBe(200)
    const jobs = server.store.db.selectFrom('jobs').select('id').where('kind', '=', 'search.update')
    expect(await jobs.execute()).toHaveLength(Math.ceil(count / 100))
    await server.work()
    expect([await found('Formername'), await found('Latername')]).toEqual([0, count])

    expect((await server.admin.delete(path)).status).toBe(200)
    await server.work()
    expect(await found('Latername')).toBe(0)
    expect((await server.admin.post(`${path}/restore`)).status).toBe(200)
    await server.work()
    expect(await found('Latername')).toBe(count)
    expect(await jobs.execute()).toEqual([])
    expect(await server.app.services.searchIndex.findProblem(server.store.db, server.store.dialect)).toBeNull()
  })

  it('keeps few documents in the transaction of the write', async () => {
    const { id } = await given(server.admin).organization({ name: 'Smallname' })
    await given(server.admin).person({ name: 'Alone', organization_id: id })
    await server.admin.put(`/contacts/organizations/${id}`, { name: 'Tinyname' })
    expect([await found('Smallname'), await found('Tinyname')]).toEqual([0, 1])
  })
})
