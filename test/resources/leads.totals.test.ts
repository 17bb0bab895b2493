// Lead totals and lead counts (db/migrations/0006 and 0017): after any change they equal the sums
// over the leads. Boards, pipelines, sources and types show them to every caller without a query
// over the leads.
import fc from 'fast-check'
import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { toScaled, totalOf } from '../../src/kernel/values/money.ts'
import { deal } from '../support/deals.ts'
import { statementsOf } from '../support/statements.ts'
import { useServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const server = useServer()

const largest = 99_999_999_999.9999
const values = [0, 0.0001, 12.5, 99.9999, largest]

const lead = (body?: object) => deal(server, body)

async function kept(): Promise<unknown[]> {
  const { rows } =
    await sql`select owner_id, stage_id, status, count, units, parts from lead_totals order by 1, 2, 3`.execute(
      server.store.db,
    )
  return rows
}

async function counted(): Promise<unknown[]> {
  const { rows } =
    await sql`select coalesce(user_id, 0) as owner_id, lead_pipeline_stage_id as stage_id, status, count(*) as count, sum(lead_value / 10000) as units, sum(lead_value % 10000) as parts from leads group by 1, 2, 3 order by 1, 2, 3`.execute(
      server.store.db,
    )
  return rows
}

async function keptCounts(): Promise<unknown[]> {
  const { rows } = await sql`select kind, record_id, owner_id, count from lead_counts order by 1, 2, 3`.execute(
    server.store.db,
  )
  return rows
}

async function countedLeads(): Promise<unknown[]> {
  const by = (kind: string, column: string) =>
    sql`select ${sql.lit(kind)} as kind, ${sql.ref(column)} as record_id, coalesce(user_id, 0) as owner_id, count(*) as count from leads group by 2, 3`
  const { rows } =
    await sql`${by('sources', 'lead_source_id')} union all ${by('types', 'lead_type_id')} order by 1, 2, 3`.execute(
      server.store.db,
    )
  return rows
}

describe('the totals', () => {
  it('are those of the leads after any changes', async () => {
    const step = fc.record({
      what: fc.constantFrom(
        'create',
        'value',
        'owner',
        'source',
        'type',
        'stage',
        'close',
        'delete',
        'restore',
        'mass',
        'dry',
        'refused',
      ),
      which: fc.nat(5),
      value: fc.constantFrom(...values),
      stage: fc.integer({ min: 1, max: 4 }),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 12 }), async (steps) => {
        await server.rewind()
        const { id: other } = await addUser(server, 'Other')
        const ids: number[] = []
        for (const { what, which, value, stage } of steps) {
          const id = ids[which % Math.max(1, ids.length)] ?? 0
          const user_id = which % 3 === 0 ? null : which % 3 === 1 ? 1 : other
          if (what === 'create' || id === 0)
            ids.push((await lead({ lead_value: value, user_id, lead_pipeline_stage_id: stage })).id)
          else if (what === 'value') await server.admin.put(`/leads/${id}`, { lead_value: value })
          else if (what === 'owner') await server.admin.put(`/leads/${id}`, { user_id })
          else if (what === 'source') await server.admin.put(`/leads/${id}`, { lead_source_id: stage })
          else if (what === 'type') await server.admin.put(`/leads/${id}`, { lead_type_id: 1 + (stage % 2) })
          else if (what === 'stage') await server.admin.put(`/leads/${id}/stage`, { lead_pipeline_stage_id: stage })
          else if (what === 'close') await server.admin.put(`/leads/${id}/stage`, { lead_pipeline_stage_id: 5 })
          else if (what === 'delete') await server.admin.delete(`/leads/${id}`)
          else if (what === 'restore') await server.admin.post(`/leads/${id}/restore`)
          else if (what === 'mass')
            await server.admin.post('/leads/mass-update', { ids, changes: { lead_value: value } })
          else if (what === 'dry')
            await server.admin.put(`/leads/${id}`, { lead_value: value }, { headers: { 'accord-dry-run': 'true' } })
          else await server.admin.put(`/leads/${id}`, { lead_value: value, user_id: 999 })
          expect(await kept(), what).toEqual(await counted())
          expect(await keptCounts(), what).toEqual(await countedLeads())
        }
      }),
      { numRuns: 12 },
    )
  })

  it('follow what the database does by itself: the leads of a deleted user have no owner', async () => {
    const { id } = await addUser(server, 'Leaver')
    await lead({ user_id: id, lead_value: largest })
    await lead({ user_id: id, lead_value: largest })
    expect((await server.admin.delete(`/settings/users/${id}`)).status).toBe(200)
    expect(await kept()).toEqual([
      { owner_id: 0, stage_id: 1, status: 1, count: 2, units: 2 * 99_999_999_999, parts: 2 * 9999 },
    ])
    expect(await keptCounts()).toEqual(await countedLeads())
    await server.store.db.deleteFrom('leads').execute()
    expect(await kept()).toEqual([])
    expect(await keptCounts()).toEqual([])
  })
})

describe('the reads of pipelines, sources and types', () => {
  it('show what the caller sees, and read no leads', async () => {
    const mate = await addUser(server, 'Mate', { view: 'group', group: 'Team' })
    const peer = await addUser(server, 'Peer', { view: 'individual', group: 'Team' })
    for (const [at, user_id] of [null, 1, mate.id, peer.id, peer.id, null].entries())
      await lead({
        user_id,
        lead_value: values[at % values.length],
        lead_pipeline_stage_id: 1 + (at % 3),
        lead_source_id: 1 + (at % 2),
        lead_type_id: 1 + (at % 2),
      })
    for (const [caller, owners] of [
      [server.admin, null],
      [mate, [mate.id, peer.id]],
      [peer, [peer.id]],
    ] as const) {
      const shown = (await caller.get('/leads')).body.data
      expect(shown).toHaveLength(owners === null ? 6 : owners.length + 1)
      const among = (key: string, id: number) => shown.filter((each: any) => each[key] === id)
      const replies: Record<string, any> = {}
      const reads = ['/pipelines', '/pipelines/1', '/pipelines/1/stages', '/sources', '/types', '/sources/1']
      const statements = await statementsOf(async () => {
        for (const path of reads) replies[path] = (await caller.get(path)).body.data
      })
      expect(statements.filter((text) => /(from|join) "?leads"?\b/.test(text))).toEqual([])
      for (const stage of replies['/pipelines/1/stages']) {
        const inside = among('lead_pipeline_stage_id', stage.id)
        expect(stage.leads_count).toBe(inside.length)
        expect(stage.lead_value).toBe(totalOf(inside.map((each: any) => toScaled(each.lead_value))))
      }
      expect(replies['/pipelines/1'].leads_count).toBe(shown.length)
      expect(replies['/pipelines']).toEqual([replies['/pipelines/1']])
      for (const source of replies['/sources'])
        expect(source.leads_count).toBe(among('lead_source_id', source.id).length)
      for (const type of replies['/types']) expect(type.leads_count).toBe(among('lead_type_id', type.id).length)
      expect(replies['/sources/1'].leads_count).toBe(among('lead_source_id', 1).length)
      const included = (await caller.get('/leads?include=pipeline,stage,source,type')).body.data[0]
      expect(included.pipeline.leads_count).toBe(shown.length)
      expect(included.source.leads_count).toBe(among('lead_source_id', included.lead_source_id).length)
    }
  })
})

describe('kanbanLeads', () => {
  it('shows the same stage totals from the maintained totals as from the leads, to every caller', async () => {
    const mate = await addUser(server, 'Mate', { view: 'group', group: 'Team' })
    const peer = await addUser(server, 'Peer', { view: 'individual', group: 'Team' })
    for (const [at, user_id] of [null, 1, mate.id, peer.id, peer.id, null, 1].entries())
      await lead({ user_id, lead_value: values[at % values.length], lead_pipeline_stage_id: 1 + (at % 3) })
    const all = (await server.admin.get('/leads')).body.data
    await server.admin.put(`/leads/${all[1].id}/stage`, { status: 'won' })
    for (const caller of [server.admin, mate, peer])
      for (const query of [
        '',
        'status=1',
        'status=1,2',
        `user_id=${peer.id}`,
        `user_id=1&status=2`,
        'pipeline_stage_id=2',
      ]) {
        let taken: any
        const statements = await statementsOf(async () => {
          taken = await caller.get(`/leads/kanban?${query}`)
        })
        const added = await caller.get(`/leads/kanban?${query}&created_at[gte]=2000-01-01`)
        expect(added.status, added.text).toBe(200)
        expect(taken.body, query).toEqual(added.body)
        // The count is read from the totals, without a query over the leads.
        expect(statements.filter((text) => /group by "leads"/.test(text))).toEqual([])
      }
  })
})
