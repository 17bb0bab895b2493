// Removing something that many records refer to: steps of bounded size, continued after a crash,
// with the removal at the end.
import { beforeEach, describe, expect, it } from 'vitest'
import { jobs } from '../../src/background.ts'
import { maxAtOnce, stepSize } from '../../src/jobs/removals.ts'
import { systemContext } from '../../src/kernel/context.ts'
import { Veto } from '../../src/kernel/write/events.ts'
import { given } from '../support/given.ts'
import { useNewServers } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

/** The number of the record whose change a listener refuses. */
let refused: number | null
beforeEach(() => {
  refused = null
})
const server = useNewServers({
  extensions: [
    (events) =>
      events.on('lead.update.before', ({ entityId }) => {
        if (entityId === refused) throw new Veto('This lead stays.')
      }),
  ],
})
const { admin } = server
const make = given(admin)

const many = maxAtOnce + stepSize + 7

/** Inserts copies of a lead directly, because the API would take long. Returns the ids in order. */
async function copiesOf(leadId: number, count: number): Promise<number[]> {
  const { db } = server.store
  const { id: _id, ...row } = await db
    .selectFrom('leads')
    .selectAll()
    .where('id', '=', leadId)
    .executeTakeFirstOrThrow()
  const rows = await db
    .insertInto('leads')
    .values(Array.from({ length: count }, () => row))
    .returning('id')
    .execute()
  return rows.map(({ id }) => id).sort((a, b) => a - b)
}

/** Returns the number of the events in each transaction that logged any. */
async function eventsByTransaction(name: string): Promise<number[]> {
  const rows = await server.store.db
    .selectFrom('events')
    .select(['id', 'first_event_id'])
    .where('name', '=', name)
    .execute()
  const counts = new Map<number, number>()
  for (const { id, first_event_id: first } of rows) counts.set(first ?? id, (counts.get(first ?? id) ?? 0) + 1)
  return [...counts.values()]
}

/** Runs the job until its process is killed before the step with this number, counted from 1. */
async function workUntilKilled(kind: string, before: number): Promise<void> {
  const job = jobs.find((each) => each.kind === kind)
  if (!job) throw new Error(`There is no job ${kind}.`)
  const row = await server.store.db
    .selectFrom('jobs')
    .select(['id', 'payload'])
    .where('kind', '=', kind)
    .executeTakeFirstOrThrow()
  let step = 0
  const killed = job.run(systemContext(server.app.services, 'api'), JSON.parse(row.payload), {
    id: row.id,
    attempt: 1,
    isLast: false,
    signal: new AbortController().signal,
    holdsLease: async () => {
      step += 1
      if (step === before) throw new Error('killed')
      return true
    },
  })
  await expect(killed).rejects.toThrow('killed')
}

const countOf = async (query: string): Promise<number> =>
  (await admin.get(`/leads?${query}&per_page=1`)).body.meta.total

const stageNamed = (pipeline: { stages: { code: string; id: number }[] }, code: string): number =>
  pipeline.stages.find((stage) => stage.code === code)?.id ?? 0

describe('deleteUser with many records', () => {
  it('deactivates the user, moves the records in steps, and deletes the user last', async () => {
    const ann = await addUser(server, 'Ann')
    const bob = await addUser(server, 'Bob')
    const ids = await copiesOf((await make.lead({ user_id: ann.id })).id, many - 1)
    const { status, body } = await admin.delete(`/settings/users/${ann.id}?reassign_to=${bob.id}`)
    expect(status).toBe(202)
    expect(body.data).toMatchObject({ kind: 'users.remove', payload: { id: ann.id, done: 0, total: many } })
    expect((await ann.get('/account')).status).toBe(401)
    expect((await admin.get(`/settings/users/${ann.id}`)).body.data.is_active).toBe(false)
    expect((await admin.put(`/leads/${ids[0]}`, { user_id: ann.id })).status).toBe(200)
    const entering = await admin.post('/leads', { title: 'Late', lead_value: 1, user_id: ann.id })
    expect(entering.body.errors).toHaveProperty('user_id')

    await workUntilKilled('users.remove', 3)
    expect(await countOf(`user_id=${bob.id}`)).toBe(2 * stepSize)
    expect(await countOf(`user_id=${ann.id}`)).toBe(many - 2 * stepSize)
    const job = (await admin.get(`/jobs/${body.data.id}`)).body.data
    expect(job.payload).toMatchObject({ done: 2 * stepSize, total: many })

    await server.work()
    expect(await countOf(`user_id=${bob.id}`)).toBe(many)
    expect((await admin.get(`/settings/users/${ann.id}`)).status).toBe(404)
    const steps = await eventsByTransaction('lead.update.after')
    expect(Math.max(...steps)).toBe(stepSize)
    expect(steps.reduce((a, b) => a + b, 0)).toBe(many)
    expect((await admin.get(`/jobs/${body.data.id}`)).status).toBe(404)
  })

  it('removes the owner in steps when there is no successor', async () => {
    const ann = await addUser(server, 'Ann')
    const [first = 0] = await copiesOf((await make.lead({ user_id: ann.id })).id, many)
    expect((await admin.delete(`/settings/users/${ann.id}`)).status).toBe(202)
    await workUntilKilled('users.remove', 2)
    expect(await countOf(`user_id=${ann.id}`)).toBe(many + 1 - stepSize)
    await server.work()
    expect((await admin.get(`/settings/users/${ann.id}`)).status).toBe(404)
    expect((await admin.get(`/leads/${first}`)).body.data).toMatchObject({ user_id: null, version: 2 })
  })

  it('deletes a user with few records at once, and changes nothing in a dry run', async () => {
    const ann = await addUser(server, 'Ann')
    const bob = await addUser(server, 'Bob')
    const path = `/settings/users/${ann.id}?reassign_to=${bob.id}`
    const { id } = await make.lead({ user_id: ann.id })
    const copies = await copiesOf(id, maxAtOnce)
    const dry = await admin.delete(path, { headers: { 'accord-dry-run': 'true' } })
    expect([dry.status, dry.body.data.payload.total]).toEqual([202, maxAtOnce + 1])
    expect((await admin.get(`/settings/users/${ann.id}`)).body.data.is_active).toBe(true)
    expect((await admin.get('/jobs?kind=users.remove')).body.data).toEqual([])
    await admin.delete(`/leads/${copies[0]}`)
    expect((await admin.delete(path)).status).toBe(200)
    expect(await countOf(`user_id=${bob.id}`)).toBe(maxAtOnce)
  })

  it('stops when a change is refused, says why, and continues when it is retried', async () => {
    const ann = await addUser(server, 'Ann')
    const bob = await addUser(server, 'Bob')
    const ids = await copiesOf((await make.lead({ user_id: ann.id })).id, many - 1)
    const { body } = await admin.delete(`/settings/users/${ann.id}?reassign_to=${bob.id}`)
    refused = ids[stepSize + 5] ?? 0
    await server.work()
    expect((await admin.get(`/jobs/${body.data.id}`)).body.data).toMatchObject({
      state: 'buried',
      last_error: 'This lead stays.',
    })
    expect(await countOf(`user_id=${bob.id}`)).toBe(stepSize)
    refused = null
    expect((await admin.post(`/jobs/${body.data.id}/retry`)).status).toBe(202)
    await server.work()
    expect(await countOf(`user_id=${bob.id}`)).toBe(many)
    expect((await admin.get(`/settings/users/${ann.id}`)).status).toBe(404)
  })

  it('stops when the user who started it may not delete users any more', async () => {
    const ann = await addUser(server, 'Ann')
    const boss = await addUser(server, 'Boss')
    await copiesOf((await make.lead({ user_id: ann.id })).id, many)
    const { body } = await boss.delete(`/settings/users/${ann.id}`)
    await admin.put(`/settings/users/${boss.id}`, { is_active: false })
    await server.work()
    expect((await admin.get(`/jobs/${body.data.id}`)).body.data).toMatchObject({ state: 'buried' })
    expect(await countOf(`user_id=${ann.id}`)).toBe(many + 1)
  })

  it('lists a user with many records as processed in a mass deletion, and deletes it later', async () => {
    const ann = await addUser(server, 'Ann')
    const bob = await addUser(server, 'Bob')
    await copiesOf((await make.lead({ user_id: ann.id })).id, many)
    const { body } = await admin.post('/settings/users/mass-delete', { ids: [ann.id, bob.id] })
    expect(body.data.processed).toEqual([ann.id, bob.id])
    expect((await admin.get(`/settings/users/${ann.id}`)).status).toBe(200)
    await server.work()
    expect((await admin.get(`/settings/users/${ann.id}`)).status).toBe(404)
  })
})

describe('updatePipeline that removes a stage with many leads', () => {
  const body = (pipeline: { stages: { code: string }[] }) => ({
    stages: pipeline.stages.filter(({ code }) => code !== 'prospect').map(({ code }) => ({ code })),
  })

  it('moves the leads in steps while the stage is shown but closed, and removes it last', async () => {
    const pipeline = (await admin.get('/pipelines')).body.data[0]
    const [from, to] = [stageNamed(pipeline, 'prospect'), stageNamed(pipeline, 'negotiation')]
    const lead = await make.lead({ lead_pipeline_id: pipeline.id, lead_pipeline_stage_id: from })
    await copiesOf(lead.id, many - 1)
    const sent = { ...body(pipeline), move_leads_to_stage_id: to }
    const { status, body: reply } = await admin.put(`/pipelines/${pipeline.id}`, sent)
    expect([status, reply.data.payload.total]).toEqual([202, many])

    await workUntilKilled('pipelines.remove', 2)
    expect(await countOf(`lead_pipeline_stage_id=${from}`)).toBe(many - stepSize)
    expect(await countOf(`lead_pipeline_stage_id=${to}`)).toBe(stepSize)
    expect((await admin.get(`/pipelines/${pipeline.id}`)).body.data.stages).toHaveLength(pipeline.stages.length)
    const late = { title: 'Late', lead_value: 1, lead_pipeline_id: pipeline.id, lead_pipeline_stage_id: from }
    expect((await admin.post('/leads', late)).body.errors).toEqual({
      lead_pipeline_stage_id: [`The stage ${from} is being removed.`],
    })
    expect((await admin.put(`/leads/${lead.id}/stage`, { lead_pipeline_stage_id: from })).status).toBe(422)
    expect((await admin.post('/leads', { ...late, lead_pipeline_stage_id: to })).status).toBe(201)
    expect((await admin.put(`/pipelines/${pipeline.id}`, { name: 'Other' })).body.code).toBe('state_conflict')

    await server.work()
    const after = (await admin.get(`/pipelines/${pipeline.id}`)).body.data
    expect(after.stages.map(({ id }: { id: number }) => id)).not.toContain(from)
    expect(await countOf(`lead_pipeline_stage_id=${to}`)).toBe(many + 1)
    expect(Math.max(...(await eventsByTransaction('lead.update.after')))).toBe(stepSize)
    expect((await admin.put(`/pipelines/${pipeline.id}`, { name: 'Other' })).status).toBe(200)
  })

  it('refuses a body at once, without a job', async () => {
    const pipeline = (await admin.get('/pipelines')).body.data[0]
    const from = stageNamed(pipeline, 'prospect')
    await copiesOf((await make.lead({ lead_pipeline_id: pipeline.id, lead_pipeline_stage_id: from })).id, many)
    const other = (await admin.post('/pipelines', { name: 'Other' })).body.data
    const path = `/pipelines/${pipeline.id}`
    const foreign = { ...body(pipeline), move_leads_to_stage_id: stageNamed(other, 'new') }
    expect((await admin.put(path, foreign)).body.errors).toHaveProperty('move_leads_to_stage_id')
    expect((await admin.put(path, { ...body(pipeline), is_default: false })).status).toBe(409)
    expect((await admin.put(path, body(pipeline), { headers: { 'if-match': '"9"' } })).status).toBe(412)
    expect((await admin.get('/jobs?kind=pipelines.remove')).body.data).toEqual([])
  })
})

describe('deletePipeline with many leads', () => {
  it('moves the leads in steps while no lead can enter, and deletes the pipeline last', async () => {
    const standard = (await admin.get('/pipelines')).body.data[0]
    const pipeline = (await admin.post('/pipelines', { name: 'Old' })).body.data
    const lead = await make.lead({
      lead_pipeline_id: pipeline.id,
      lead_pipeline_stage_id: stageNamed(pipeline, 'negotiation'),
    })
    await copiesOf(lead.id, many - 1)
    expect((await admin.delete(`/pipelines/${pipeline.id}`)).status).toBe(202)
    await workUntilKilled('pipelines.remove', 2)
    expect(await countOf(`lead_pipeline_id=${pipeline.id}`)).toBe(many - stepSize)
    const late = await admin.post('/leads', { title: 'Late', lead_value: 1, lead_pipeline_id: pipeline.id })
    expect(late.body.errors).toHaveProperty('lead_pipeline_id')
    expect((await admin.delete(`/pipelines/${pipeline.id}`)).body.code).toBe('state_conflict')
    await server.work()
    expect((await admin.get(`/pipelines/${pipeline.id}`)).status).toBe(404)
    expect(await countOf(`lead_pipeline_stage_id=${stageNamed(standard, 'negotiation')}`)).toBe(many)
    expect(Math.max(...(await eventsByTransaction('lead.update.after')))).toBe(stepSize)
  })

  it('moves them to the named successors of their stages, also after a kill', async () => {
    const [old, next] = [
      (await admin.post('/pipelines', { name: 'Left' })).body.data,
      (await admin.post('/pipelines', { name: 'Next' })).body.data,
    ]
    const stage = { lead_pipeline_id: old.id, lead_pipeline_stage_id: stageNamed(old, 'negotiation') }
    await copiesOf((await make.lead(stage)).id, many - 1)
    const successor = stageNamed(next, 'prospect')
    const query = `stage_successors=${stage.lead_pipeline_stage_id}:${successor}`
    expect((await admin.delete(`/pipelines/${old.id}?${query}`)).status).toBe(202)
    await workUntilKilled('pipelines.remove', 2)
    await server.work()
    expect((await admin.get(`/pipelines/${old.id}`)).status).toBe(404)
    expect(await countOf(`lead_pipeline_stage_id=${successor}`)).toBe(many)
  })
})

describe('deleteTag with many records', () => {
  async function tagged(count: number): Promise<{ id: number; name: string; leads: number[] }> {
    const tag = await make.tag()
    const leads = await copiesOf((await make.lead()).id, count)
    await server.store.db
      .insertInto('lead_tags')
      .values(leads.map((id) => ({ lead_id: id, tag_id: tag.id })))
      .execute()
    return { ...tag, leads }
  }

  it('detaches the tag in steps while it cannot be attached, and deletes it last', async () => {
    const { id, name, leads } = await tagged(many)
    const other = await make.lead()
    const { status, body } = await admin.delete(`/tags/${id}`)
    expect([status, body.data.payload.total]).toEqual([202, many])
    await workUntilKilled('tags.remove', 2)
    expect(await countOf(`tag_id=${id}`)).toBe(many - stepSize)
    expect((await admin.get(`/tags/${id}`)).body.data.name).toBe(name)
    expect((await admin.post(`/leads/${other.id}/tags`, { tag_id: id })).status).toBe(422)
    expect((await admin.post(`/leads/${other.id}/tags`, { name })).body.code).toBe('state_conflict')
    expect((await admin.put(`/leads/${other.id}`, { tag_ids: [id] })).status).toBe(422)
    expect((await admin.delete(`/tags/${id}`)).body.code).toBe('state_conflict')

    await server.work()
    expect((await admin.get(`/tags/${id}`)).status).toBe(404)
    expect((await admin.get(`/leads/${leads[0]}`)).body.data).toMatchObject({ tags: [], version: 2 })
    const steps = await eventsByTransaction('leads.tag.delete.after')
    expect(Math.max(...steps)).toBe(stepSize)
    expect(steps.reduce((a, b) => a + b, 0)).toBe(many)
  })

  it('lists the tag as processed in a mass deletion, and deletes it later', async () => {
    const { id } = await tagged(many)
    const few = await tagged(2)
    const { body } = await admin.post('/tags/mass-delete', { ids: [id, few.id] })
    expect(body.data.processed).toEqual([id, few.id])
    expect((await admin.get(`/tags/${few.id}`)).status).toBe(404)
    await server.work()
    expect((await admin.get(`/tags/${id}`)).status).toBe(404)
  })
})

describe('a deletion in steps of a record that a stored rule names', () => {
  const naming = (attribute: string, operator: string, value: unknown) => ({
    name: 'Rule',
    entity_type: 'leads',
    event: 'lead.create.after',
    conditions: [{ attribute, operator, value }],
    actions: [{ id: 'add_note_as_activity', value: 'Seen' }],
  })
  const save = async (body: object): Promise<number> => {
    const { status, body: reply, text } = await admin.post('/settings/workflows', body)
    expect(status, text).toBe(201)
    return reply.data.id
  }
  const valueOfRule = async (workflow: number) =>
    (await admin.get(`/settings/workflows/${workflow}`)).body.data.conditions[0].value
  const refusesWithoutJob = async (path: string) => {
    const { status, body } = await admin.delete(path)
    expect([status, body.code]).toEqual([409, 'in_use'])
    expect((await admin.get('/jobs')).body.data.filter(({ kind }: { kind: string }) => /remove/.test(kind))).toEqual([])
  }

  it('is refused at once for a tag, or replaces the tag in the rule', async () => {
    const [tag, next] = [await make.tag(), await make.tag()]
    const leads = await copiesOf((await make.lead()).id, many)
    await server.store.db
      .insertInto('lead_tags')
      .values(leads.map((id) => ({ lead_id: id, tag_id: tag.id })))
      .execute()
    const rule = await save(naming('tag_ids', '!{}', [tag.id]))
    await refusesWithoutJob(`/tags/${tag.id}`)
    const mass = await admin.post('/tags/mass-delete', { ids: [tag.id] })
    expect(mass.body.failed).toMatchObject([{ id: tag.id, code: 'in_use' }])
    expect((await admin.delete(`/tags/${tag.id}?replace_with=${next.id}`)).status).toBe(202)
    expect(await valueOfRule(rule)).toEqual([next.id])
    await server.work()
    expect((await admin.get(`/tags/${tag.id}`)).status).toBe(404)
  })

  it('is refused at once for a user, who stays active, or replaces the user in the rule', async () => {
    const ann = await addUser(server, 'Ann')
    const bob = await addUser(server, 'Bob')
    await copiesOf((await make.lead({ user_id: ann.id })).id, many)
    const rule = await save(naming('user_id', '!=', ann.id))
    await refusesWithoutJob(`/settings/users/${ann.id}?reassign_to=${bob.id}`)
    expect((await admin.get(`/settings/users/${ann.id}`)).body.data.is_active).toBe(true)
    const path = `/settings/users/${ann.id}?reassign_to=${bob.id}&replace_with=${bob.id}`
    expect((await admin.delete(path)).status).toBe(202)
    expect(await valueOfRule(rule)).toBe(bob.id)
    await server.work()
    expect((await admin.get(`/settings/users/${ann.id}`)).status).toBe(404)
  })

  it('is refused at once for a pipeline and its stages, or replaces the pipeline in the rule', async () => {
    const standard = (await admin.get('/pipelines')).body.data[0]
    const pipeline = (await admin.post('/pipelines', { name: 'Old' })).body.data
    const stage = stageNamed(pipeline, 'negotiation')
    const lead = await make.lead({ lead_pipeline_id: pipeline.id, lead_pipeline_stage_id: stage })
    await copiesOf(lead.id, many)
    const ofStage = await save(naming('lead_pipeline_stage_id', '!=', stage))
    const path = `/pipelines/${pipeline.id}`
    await refusesWithoutJob(path)
    await admin.delete(`/settings/workflows/${ofStage}`)
    const rule = await save(naming('lead_pipeline_id', '!=', pipeline.id))
    await refusesWithoutJob(path)
    expect((await admin.delete(`${path}?replace_with=${standard.id}`)).status).toBe(202)
    expect(await valueOfRule(rule)).toBe(standard.id)
    await server.work()
    expect((await admin.get(path)).status).toBe(404)
  })

  it('stops with the sentence when a rule names the record meanwhile', async () => {
    const pipeline = (await admin.post('/pipelines', { name: 'Old' })).body.data
    const stage = stageNamed(pipeline, 'negotiation')
    await copiesOf((await make.lead({ lead_pipeline_id: pipeline.id, lead_pipeline_stage_id: stage })).id, many)
    const { body } = await admin.delete(`/pipelines/${pipeline.id}`)
    await save(naming('lead_pipeline_id', '!=', pipeline.id))
    await server.work()
    const job = (await admin.get(`/jobs/${body.data.id}`)).body.data
    expect(job.state).toBe('buried')
    expect(job.last_error).toContain('named by workflows')
  })
})
