// The deletion of a lead, person or organization to which many records belong: a job deletes them
// in steps and the record last, and a job brings them back after a restore.
import { describe, expect, it } from 'vitest'
import { given } from '../support/given.ts'
import { useSharedServer } from '../support/using.ts'

const count = 250

const server = useSharedServer()

/** Adds activities that are linked to the lead alone, directly, because the API would take long. */
async function addActivities(leadId: number): Promise<void> {
  const { db } = server.store
  const sent = {
    title: 'Call',
    type: 'call',
    schedule_from: '2026-03-01T10:00:00Z',
    schedule_to: '2026-03-01T11:00:00Z',
    lead_id: leadId,
  }
  const { body } = await server.admin.post('/activities', sent)
  const { id: _, ...row } = await db
    .selectFrom('activities')
    .selectAll()
    .where('id', '=', body.data.id)
    .executeTakeFirstOrThrow()
  const rows = Array.from({ length: count - 1 }, () => row)
  const added = await db.insertInto('activities').values(rows).returning('id').execute()
  const links = added.map(({ id }) => ({ activity_id: id, lead_id: leadId }))
  await db.insertInto('lead_activities').values(links).execute()
  await server.app.services.searchIndex.rebuildOnline(server.store)
}

const activitiesOf = async (leadId: number): Promise<number> =>
  (await server.admin.get(`/activities?lead_id=${leadId}&per_page=1`)).body.meta.total

describe('a lead with many activities of its own', () => {
  it('is deleted by a job, activities first, and comes back with all of them', async () => {
    const lead = await given(server.admin).lead({ title: 'Busy' })
    await addActivities(lead.id)
    const path = `/leads/${lead.id}`
    const { status, body } = await server.admin.delete(path)
    expect([status, body.data.payload]).toEqual([202, expect.objectContaining({ done: 0, total: count })])
    expect((await server.admin.get(path)).status).toBe(200)
    expect((await server.admin.delete(path)).status).toBe(409)
    await server.work()
    expect((await server.admin.get(path)).status).toBe(404)
    expect((await server.store.db.selectFrom('activities').select('id').execute()).length).toBe(0)
    const deletions = server.store.db.selectFrom('events').select('id').where('name', '=', 'activity.delete.after')
    expect(await deletions.execute()).toHaveLength(count)

    expect((await server.admin.post(`${path}/restore`)).status).toBe(200)
    await server.work()
    expect(await activitiesOf(lead.id)).toBe(count)
    expect((await server.store.db.selectFrom('jobs').select('kind').execute()).map(({ kind }) => kind)).toEqual([])
    expect(await server.app.services.searchIndex.findProblem(server.store.db, server.store.dialect)).toBeNull()
  })

  it('is deleted at once with few of them, alone or among others', async () => {
    const [one, other] = [await given(server.admin).lead({ title: 'Idle' }), await given(server.admin).lead()]
    expect((await server.admin.delete(`/leads/${one.id}`)).status).toBe(200)
    await addActivities(other.id)
    const third = await given(server.admin).lead({ title: 'Third' })
    const { body } = await server.admin.post('/leads/mass-delete', { ids: [other.id, third.id] })
    expect(body.data.processed).toEqual([other.id, third.id])
    expect((await server.admin.get(`/leads/${third.id}`)).status).toBe(404)
    expect((await server.admin.get(`/leads/${other.id}`)).status).toBe(200)
    await server.work()
    expect((await server.admin.get(`/leads/${other.id}`)).status).toBe(404)
  })
})

describe('a person whom many custom attributes name', () => {
  it('is deleted by a job, after each record has lost the reference in an update of its own', async () => {
    const { db } = server.store
    const person = await given(server.admin).person({ name: 'Named' })
    const lookup = {
      entity_type: 'organizations',
      type: 'lookup',
      lookup_type: 'persons',
      code: 'partner',
      name: 'Partner',
    }
    expect((await server.admin.post('/settings/attributes', lookup)).status).toBe(201)
    const first = await server.admin.post('/contacts/organizations', {
      name: 'First',
      custom_attributes: { partner: person.id },
    })
    const { id: _, ...row } = await db
      .selectFrom('organizations')
      .selectAll()
      .where('id', '=', first.body.data.id)
      .executeTakeFirstOrThrow()
    const rows = Array.from({ length: count - 1 }, (_each, index) => ({
      ...row,
      name: `Other ${index}`,
      name_key: `other ${index}`,
    }))
    await db.insertInto('organizations').values(rows).execute()
    await server.app.services.searchIndex.rebuildOnline(server.store)
    expect((await server.admin.delete(`/contacts/persons/${person.id}`)).status).toBe(202)
    await server.work()
    expect((await server.admin.get(`/contacts/persons/${person.id}`)).status).toBe(404)
    const filled = await server.admin.get('/contacts/organizations?custom_attributes[partner][null]=false')
    expect(filled.body.data).toEqual([])
    const updates = db.selectFrom('events').select('id').where('name', '=', 'contacts.organization.update.after')
    expect(await updates.execute()).toHaveLength(count)
  })
})
