// Pipelines and their stages.
import { describe, expect, it } from 'vitest'
import { useNewServers } from '../support/using.ts'

const server = useNewServers()

const codes = (pipeline: { stages: { code: string }[] }): string[] => pipeline.stages.map(({ code }) => code)
const stageOf = (pipeline: { stages: { code: string; id: number }[] }, code: string): number =>
  pipeline.stages.find((stage) => stage.code === code)?.id ?? 0

async function lead(stage: number): Promise<{ id: number; version: number }> {
  const { body } = await server.admin.post('/leads', { title: 'Deal', lead_value: 10.5, lead_pipeline_stage_id: stage })
  server.events()
  return body.data
}

describe('createPipeline', () => {
  it('gives a pipeline without stages the six customary ones, numbered without gaps', async () => {
    const { status, body } = await server.admin.post('/pipelines', { name: 'Partners' })
    expect(status).toBe(201)
    expect(codes(body.data)).toEqual(['new', 'follow-up', 'prospect', 'negotiation', 'won', 'lost'])
    expect(body.data.stages.map((stage: { sort_order: number }) => stage.sort_order)).toEqual([1, 2, 3, 4, 5, 6])
    expect(body.data).toMatchObject({ is_default: false, rotten_days: 30, leads_count: 0 })
    expect(server.events()).toEqual(['settings.pipeline.create.before', 'settings.pipeline.create.after'])
  })

  it('adds new, won and lost around the stages that are sent, and makes codes of names', async () => {
    const { body } = await server.admin.post('/pipelines', {
      name: 'Partners',
      stages: [{ name: 'First Demo', probability: 40 }],
    })
    expect(codes(body.data)).toEqual(['new', 'first-demo', 'won', 'lost'])
    expect(body.data.stages[1]).toMatchObject({ name: 'First Demo', probability: 40, is_user_defined: true })
  })

  it('takes the default from the pipeline that had it, as a change of that pipeline', async () => {
    const { body } = await server.admin.post('/pipelines', { name: 'Partners', is_default: true })
    expect(body.data.is_default).toBe(true)
    expect(server.events()).toEqual([
      'settings.pipeline.update.before',
      'settings.pipeline.create.before',
      'settings.pipeline.update.after',
      'settings.pipeline.create.after',
    ])
    expect((await server.admin.get('/pipelines/1')).body.data).toMatchObject({ is_default: false, version: 2 })
  })

  it('names every wrong stage and creates nothing', async () => {
    const stages = [
      { code: 'won', name: 'Won', probability: 50 },
      { probability: 5 },
      { name: 'Demo' },
      { name: 'demo' },
    ]
    const { status, body } = await server.admin.post('/pipelines', { name: 'Partners', stages })
    expect(status).toBe(422)
    expect(Object.keys(body.errors).sort()).toEqual(['stages.0.probability', 'stages.1.name', 'stages.3.name'])
    expect((await server.admin.get('/pipelines')).body.meta.total).toBe(1)
    expect(server.events()).toEqual([])
  })
})

describe('updatePipeline', () => {
  it('finds a stage by its name alone, through the code that the name makes, and keeps its leads', async () => {
    const { body } = await server.admin.post('/pipelines', { name: 'Partners', stages: [{ name: 'First Demo' }] })
    const demo = stageOf(body.data, 'first-demo')
    const { version } = await lead(demo)
    const stages = [{ code: 'new' }, { name: 'FIRST demo!', probability: 70 }, { name: 'Won' }, { name: 'Lost' }]
    const changed = await server.admin.put(`/pipelines/${body.data.id}`, { stages })
    expect(changed.status, changed.text).toBe(200)
    expect(changed.body.data.stages[1]).toMatchObject({
      id: demo,
      code: 'first-demo',
      name: 'FIRST demo!',
      probability: 70,
      leads_count: 1,
    })
    expect(server.events()).toEqual(['settings.pipeline.update.before', 'settings.pipeline.update.after'])
    expect((await server.admin.get('/leads')).body.data[0].version).toBe(version)
  })

  it('refuses names that make the same code, or none, on the name that was sent', async () => {
    const names = ['A!', 'A?', '!', '?']
    const stages = [{ code: 'new' }, ...names.map((name) => ({ name })), { code: 'won' }, { code: 'lost' }]
    const { status, body } = await server.admin.put('/pipelines/1', { stages })
    expect([status, Object.keys(body.errors)]).toEqual([422, ['stages.3.name', 'stages.4.name', 'stages.2.name']])
    expect(server.events()).toEqual([])
    expect((await server.admin.get('/pipelines/1')).body.data.stages).toHaveLength(6)
  })

  it('changes a stage by code, keeps the others when all are sent, and keeps their ids', async () => {
    const before = (await server.admin.get('/pipelines/1')).body.data
    const stages = before.stages.map((stage: { code: string; name: string }) =>
      stage.code === 'prospect' ? { code: 'prospect', name: 'Proposal', probability: 60 } : { code: stage.code },
    )
    const { status, body } = await server.admin.put('/pipelines/1', { stages })
    expect(status).toBe(200)
    expect(body.data.stages.map(({ id }: { id: number }) => id)).toEqual([1, 2, 3, 4, 5, 6])
    expect(body.data.stages[2]).toMatchObject({ name: 'Proposal', probability: 60 })
    expect(body.data.version).toBe(2)
  })

  it('puts the stages into the order of the list', async () => {
    const sent = ['new', 'negotiation', 'prospect', 'follow-up', 'won', 'lost'].map((code) => ({ code }))
    const { status, body } = await server.admin.put('/pipelines/1', { stages: sent })
    expect(status).toBe(200)
    expect(codes(body.data)).toEqual(sent.map(({ code }) => code))
    expect(body.data.stages.map(({ sort_order }: { sort_order: number }) => sort_order)).toEqual([1, 2, 3, 4, 5, 6])
    expect(body.data.version).toBe(2)
    const longer = [...sent.slice(0, 2), { name: 'Demo' }, ...sent.slice(2)]
    const { body: added } = await server.admin.put('/pipelines/1', { stages: longer })
    expect(codes(added.data)).toEqual(['new', 'negotiation', 'demo', 'prospect', 'follow-up', 'won', 'lost'])
  })

  it('lets two stages swap their names', async () => {
    const { status, body } = await server.admin.put('/pipelines/1', {
      stages: [{ id: 1 }, { id: 2, name: 'Prospect' }, { id: 3, name: 'Follow Up' }, { id: 4 }, { id: 5 }, { id: 6 }],
    })
    expect(status).toBe(200)
    expect(body.data.stages.map(({ name }: { name: string }) => name)).toEqual([
      'New',
      'Prospect',
      'Follow Up',
      'Negotiation',
      'Won',
      'Lost',
    ])
  })

  it('moves the leads of a removed stage to `new`, with one event each', async () => {
    const moved = await lead(3)
    const { status } = await server.admin.put('/pipelines/1', {
      stages: [{ id: 1 }, { id: 2 }, { id: 4 }, { id: 5 }, { id: 6 }],
    })
    expect(status).toBe(200)
    expect(server.events().filter((name) => name.startsWith('lead.'))).toEqual([
      'lead.update.before',
      'lead.update.after',
    ])
    expect((await server.admin.get(`/leads/${moved.id}`)).body.data).toMatchObject({
      lead_pipeline_stage_id: 1,
      version: 2,
    })
  })

  it('moves them where move_leads_to_stage_id says, and closes them there', async () => {
    const moved = await lead(3)
    await server.admin.put('/pipelines/1', {
      stages: [{ id: 1 }, { id: 2 }, { id: 4 }, { id: 5 }, { id: 6 }],
      move_leads_to_stage_id: 6,
    })
    expect((await server.admin.get(`/leads/${moved.id}`)).body.data).toMatchObject({
      status: 3,
      stage: { code: 'lost' },
    })
  })

  it('refuses to remove won with 409 and leaves every stage as it was', async () => {
    const { status, body } = await server.admin.put('/pipelines/1', { stages: [{ id: 1 }, { id: 6 }] })
    expect([status, body.code]).toEqual([409, 'protected'])
    expect((await server.admin.get('/pipelines/1')).body.data.stages).toHaveLength(6)
    expect(server.events()).toEqual([])
  })

  it('refuses to leave the installation without a default', async () => {
    const { status, body } = await server.admin.put('/pipelines/1', { is_default: false })
    expect([status, body.code]).toEqual([409, 'protected'])
  })

  it('changes nothing and keeps the version when what was read is written back', async () => {
    const { body } = await server.admin.get('/pipelines/1')
    const { status, body: after } = await server.admin.put('/pipelines/1', body.data)
    expect(status).toBe(200)
    expect(after.data).toEqual(body.data)
  })
})

describe('deletePipeline', () => {
  it('moves leads to the default pipeline, to the stage of the same code or else to new', async () => {
    const { data } = (await server.admin.post('/pipelines', { name: 'Partners', stages: [{ name: 'Demo' }] })).body
    const [demo, won] = [await lead(stageOf(data, 'demo')), await lead(stageOf(data, 'won'))]
    const { status } = await server.admin.delete(`/pipelines/${data.id}`)
    expect(status).toBe(200)
    expect((await server.admin.get(`/leads/${demo.id}`)).body.data).toMatchObject({
      lead_pipeline_id: 1,
      stage: { code: 'new' },
      status: 1,
    })
    expect((await server.admin.get(`/leads/${won.id}`)).body.data).toMatchObject({
      lead_pipeline_id: 1,
      stage: { code: 'won' },
      status: 2,
    })
  })

  it('moves leads to the successors of their stages, which take their places in rules too', async () => {
    const stages = [{ name: 'Demo' }, { name: 'Offer' }]
    const old = (await server.admin.post('/pipelines', { name: 'Old', stages })).body.data
    const next = (await server.admin.post('/pipelines', { name: 'Next', stages: [{ name: 'Trial' }] })).body.data
    const [demo, offer, trial] = [stageOf(old, 'demo'), stageOf(old, 'offer'), stageOf(next, 'trial')]
    const [moved, other] = [await lead(demo), await lead(offer)]
    const rule = await server.admin.post('/settings/workflows', {
      name: 'Demo reached',
      entity_type: 'leads',
      event: 'lead.update.after',
      conditions: [{ attribute: 'lead_pipeline_stage_id', operator: '==', value: demo }],
      actions: [{ id: 'add_note_as_activity', value: 'Seen' }],
    })
    expect(rule.status).toBe(201)
    const path = `/pipelines/${old.id}`
    expect(await server.admin.delete(path)).toMatchObject({ status: 409, body: { code: 'in_use' } })
    expect((await server.admin.delete(`${path}?stage_successors=${offer}:${trial}`)).status).toBe(409)
    const dry = await server.admin.delete(`${path}?stage_successors=${demo}:${trial}`, {
      headers: { 'accord-dry-run': 'true' },
    })
    expect(dry.status).toBe(200)
    expect((await server.admin.get(`/leads/${moved.id}`)).body.data.lead_pipeline_stage_id).toBe(demo)
    expect((await server.admin.delete(`${path}?stage_successors=${demo}:${trial}`)).status).toBe(200)
    const shown = { lead_pipeline_id: next.id, lead_pipeline_stage_id: trial }
    expect((await server.admin.get(`/leads/${moved.id}`)).body.data).toMatchObject(shown)
    expect((await server.admin.get(`/leads/${other.id}`)).body.data).toMatchObject({ stage: { code: 'new' } })
    expect((await server.admin.get(`/settings/workflows/${rule.body.data.id}`)).body.data.conditions).toMatchObject([
      { value: trial },
    ])
  })

  it('names every wrong pair of stages, and deletes nothing', async () => {
    const { data } = (await server.admin.post('/pipelines', { name: 'Old', stages: [{ name: 'Demo' }] })).body
    const demo = stageOf(data, 'demo')
    const deletion = (pairs: string) => server.admin.delete(`/pipelines/${data.id}?stage_successors=${pairs}`)
    for (const [pairs, sentence] of [
      [`1:${demo}`, `The pipeline ${data.id} has no stage 1.`],
      [`${demo}:1,${demo}:2`, `The stage ${demo} has two successors.`],
      [`${demo}:${stageOf(data, 'new')}`, `No other pipeline has a stage ${stageOf(data, 'new')}.`],
      [`${demo}:99999`, 'No other pipeline has a stage 99999.'],
    ] as const) {
      const { status, body } = await deletion(pairs)
      expect({ status, errors: body.errors }).toEqual({ status: 422, errors: { 'query.stage_successors': [sentence] } })
    }
    expect((await deletion(`${demo}-1`)).status).toBe(422)
    expect((await server.admin.get(`/pipelines/${data.id}`)).status).toBe(200)
  })

  it('refuses the default pipeline', async () => {
    expect((await server.admin.delete('/pipelines/1')).body.code).toBe('protected')
  })
})

describe('listPipelineStages', () => {
  it('shows the stages in order with the count and sum of their visible leads', async () => {
    await lead(2)
    await lead(2)
    const { body } = await server.admin.get('/pipelines/1/stages')
    expect(body.data).toHaveLength(6)
    expect(body.data[1]).toMatchObject({
      code: 'follow-up',
      leads_count: 2,
      lead_value: 21,
      formatted_lead_value: '$21.00',
    })
  })

  it('answers 404 for a pipeline that does not exist', async () => {
    expect((await server.admin.get('/pipelines/99/stages')).status).toBe(404)
  })
})
