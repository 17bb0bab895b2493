// New leads follow the current tags, sources, types, pipelines and attributes, even if another
// process changed them. Statements and the attribute set are cached, but the rows must not be.
import { describe, expect, it } from 'vitest'
import { openStore } from '../../db/store.ts'
import { isPostgres } from '../support/engine.ts'
import { given } from '../support/given.ts'
import { installedFolder } from '../support/installed.ts'
import { useOne, useSharedServer } from '../support/using.ts'

// Uses two connections to an SQLite file. test/postgres/processes.test.ts tests PostgreSQL.
describe.runIf(!isPostgres)('a create after a change of reference data', () => {
  const folder = useOne(installedFolder)
  const server = useSharedServer(() => {
    const { dataDir, databaseUrl } = folder.config
    return { config: { dataDir, databaseUrl, env: 'production' }, open: () => folder.store }
  })
  /** A second connection, like that of another process. */
  const other = useOne(() => openStore(folder.config.databaseUrl))

  let count = 0
  const create = (body: object) => server.admin.post('/leads', { title: `Lead ${++count}`, lead_value: 1, ...body })
  const status = async (body: object): Promise<number> => (await create(body)).status
  /** Creates the lead three times, so that every statement is cached. */
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

  it('knows a renamed tag, a new tag and a deleted tag', async () => {
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
  ] as const)('knows a new %s and a deleted one', async (kind, field, path, table) => {
    const make = given(server.admin)[kind]
    // The unknown tag makes every request fail, so no lead refers to the row.
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

  it('uses the current default pipeline and its current stages', async () => {
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
    await other.transaction(async (db) => {
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

  it('checks against the current attributes', async () => {
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
