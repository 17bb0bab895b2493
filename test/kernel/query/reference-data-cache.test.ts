// What transactions keep of the vocabulary (statement-cache.ts, attributes/set.ts): the next write goes by it as it is now, whoever changed it and
// however it ended. As in use, where what is kept is believed, and as in tests, where it is looked at each time.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openStore, type Store } from '../../../db/store.ts'
import { startServer, type TestServer } from '../../support/app.ts'
import { given } from '../../support/given.ts'
import { type Folder, installedFolder } from '../../support/installed.ts'
import { statementsOf } from '../../support/statements.ts'

describe.each(['production', 'test'] as const)('a write after a change of the vocabulary, in %s,', (env) => {
  let folder: Folder
  let server: TestServer
  /** Stands for another process: nothing but the database tells the server of it. */
  let other: Store
  beforeAll(async () => {
    folder = await installedFolder()
    const { dataDir, databaseUrl } = folder.config
    server = await startServer({ config: { dataDir, databaseUrl, env }, open: () => folder.store })
    other = openStore(databaseUrl)
  })
  afterAll(async () => {
    await other.close()
    await server.app.http.close()
    await folder.close()
  })

  let count = 0
  const create = (body: object) => server.admin.post('/leads', { title: `Lead ${++count}`, lead_value: 1, ...body })
  const status = async (body: object): Promise<number> => (await create(body)).status
  /** Often enough that what it asks is kept. */
  const settle = async (body: object): Promise<void> => {
    for (let times = 0; times < 3; times++) expect(await status(body)).toBe(201)
  }
  const refusal = async (body: object): Promise<string[]> => {
    const reply = await create(body)
    expect(reply.status, reply.text).toBe(422)
    return Object.keys(reply.body.errors)
  }
  const done = async (reply: Promise<{ status: number; text: string }>): Promise<void> => {
    const { status, text } = await reply
    expect(status, text).toBeLessThan(300)
  }

  it('asks for none of it again as long as it is the same', async () => {
    const { id } = await given(server.admin).tag()
    const body = { tag_ids: [id], lead_source_id: 1, lead_type_id: 1 }
    await settle(body)
    const before = server.store.referenceDataGeneration()
    const asked = await statementsOf(() => settle(body))
    const kept =
      /from "(tags|lead_sources|lead_types|lead_pipelines|lead_pipeline_stages|attributes)" where|count\(.*from "attributes"/
    const again = asked.filter((text) => kept.test(text) && /^select/.test(text))
    // In tests each is looked at.
    if (env === 'test') expect(again.length).toBeGreaterThan(3)
    else expect(again).toEqual([])
    expect(server.store.referenceDataGeneration()).toBe(before)
  })

  it('knows a tag by its new name, a new one, and one that is gone no more', async () => {
    const make = given(server.admin)
    const tag = await make.tag({ name: 'Before' })
    const told = async (body: object): Promise<unknown[]> => {
      server.events()
      await settle(body)
      const links = server.seen.filter(({ name }) => name === 'leads.tag.create.after')
      return links.map(({ entity }) => (entity as { tag?: { name: string } }).tag?.name)
    }
    expect(await told({ tag_ids: [tag.id] })).toEqual(Array(3).fill('Before'))
    await done(server.admin.put(`/tags/${tag.id}`, { name: 'After' }))
    expect(await told({ tag_ids: [tag.id] })).toEqual(Array(3).fill('After'))
    const set = { name: 'Theirs', name_key: 'theirs' }
    await other.db.updateTable('tags').set(set).where('id', '=', tag.id).execute()
    expect(await told({ tag_ids: [tag.id] })).toEqual(Array(3).fill('Theirs'))
    expect(await refusal({ tag_ids: [tag.id + 1] })).toEqual(['tag_ids.0'])
    const next = await make.tag()
    expect(next.id).toBe(tag.id + 1)
    await settle({ tag_ids: [tag.id, next.id] })
    await done(server.admin.delete(`/tags/${tag.id}`))
    expect(await refusal({ tag_ids: [tag.id, next.id] })).toEqual(['tag_ids.0'])
    await other.db.deleteFrom('tags').where('id', '=', next.id).execute()
    expect(await refusal({ tag_ids: [next.id] })).toEqual(['tag_ids.0'])
  })

  it.each([
    ['source', 'lead_source_id', '/sources', 'lead_sources'],
    ['type', 'lead_type_id', '/types', 'lead_types'],
  ] as const)('knows a %s that is new, and not one that is gone', async (kind, field, path, table) => {
    const make = given(server.admin)[kind]
    // Refused in any case, so that nothing but the answers of before stands in the way of its end.
    const isKnown = async (id: number): Promise<boolean> => {
      const answers = new Set<boolean>()
      for (let times = 0; times < 3; times++)
        answers.add(!(await refusal({ [field]: id, tag_ids: [999_999] })).includes(field))
      expect(answers.size).toBe(1)
      return answers.has(true)
    }
    const { id } = await make()
    expect([await isKnown(id), await isKnown(id + 1)]).toEqual([true, false])
    expect((await make()).id).toBe(id + 1)
    expect([await isKnown(id), await isKnown(id + 1)]).toEqual([true, true])
    await done(server.admin.delete(`${path}/${id}`))
    expect([await isKnown(id), await isKnown(id + 1)]).toEqual([false, true])
    await other.db
      .deleteFrom(table)
      .where('id', '=', id + 1)
      .execute()
    expect(await isKnown(id + 1)).toBe(false)
    await settle({ [field]: 1 })
  })

  it('goes to the pipeline that is the default now, and to stages that are there', async () => {
    const where = async (body: object = {}) => {
      const { lead_pipeline_id, lead_pipeline_stage_id } = (await create(body)).body.data
      return [lead_pipeline_id, lead_pipeline_stage_id]
    }
    const first = await where()
    expect([await where(), await where()]).toEqual([first, first])
    const made = await given(server.admin).pipeline({ stages: [{ name: 'Demo' }], is_default: true } as never)
    const stageOf = (code: string) => made.stages.find((stage) => stage.code === code)?.id ?? 0
    expect(await where()).toEqual([made.id, stageOf('new')])
    const demo = { lead_pipeline_stage_id: stageOf('demo') }
    expect(await where(demo)).toEqual([made.id, stageOf('demo')])
    const stages = ['New', 'Later', 'Won', 'Lost'].map((name) => ({ name }))
    await done(server.admin.put(`/pipelines/${made.id}`, { stages }))
    expect(await refusal(demo)).toEqual(['lead_pipeline_stage_id'])
    await done(server.admin.put(`/pipelines/${first[0]}`, { is_default: true }))
    expect([await where(), await where()]).toEqual([first, first])
    await other.db.transaction().execute(async (db) => {
      for (const [is_default, id] of [
        [0, first[0]],
        [1, made.id],
      ] as const)
        await db.updateTable('lead_pipelines').set({ is_default }).where('id', '=', id).execute()
    })
    expect(await where()).toEqual([made.id, stageOf('new')])
    await done(server.admin.put(`/pipelines/${first[0]}`, { is_default: true }))
    await done(server.admin.delete(`/pipelines/${made.id}`))
    expect(await refusal({ lead_pipeline_id: made.id })).toEqual(['lead_pipeline_id'])
    expect(await where()).toEqual(first)
  })

  it('asks for what an attribute demands now', async () => {
    const about = { entity_type: 'leads', code: 'size', name: 'Size', type: 'select', options: [{ name: 'S' }] }
    await settle({})
    expect(await refusal({ custom_attributes: { size: 1 } })).toEqual(['custom_attributes.size'])
    const reply = await server.admin.post('/settings/attributes', { ...about, is_required: true })
    const { id, options } = reply.body.data
    expect(await refusal({})).toEqual(['custom_attributes.size'])
    const body = { custom_attributes: { size: options[0].id } }
    await settle(body)
    const wanted = (is_required: number) =>
      other.db
        .updateTable('attributes')
        .set((eb) => ({ is_required, version: eb('version', '+', 1) }))
        .where('id', '=', id)
        .execute()
    await wanted(0)
    await settle({})
    await wanted(1)
    expect(await refusal({})).toEqual(['custom_attributes.size'])
    const size = options[0].id + 1
    expect(await refusal({ custom_attributes: { size } })).toEqual(['custom_attributes.size'])
    await done(server.admin.put(`/settings/attributes/${id}`, { options: [...options, { name: 'M' }] }))
    await settle({ custom_attributes: { size } })
    await done(server.admin.delete(`/settings/attributes/${id}`))
    await settle({})
    expect(await refusal(body)).toEqual(['custom_attributes.size'])
  })
})
