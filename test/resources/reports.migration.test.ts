// An installation of an earlier version: its won and lost leads are booked from the event log, each
// for the owner and with the value of the win, and those that the log lacks from the leads.
import { expect, it } from 'vitest'
import { migrate, migrations } from '../../db/migrate.ts'
import { seed } from '../../db/seed.ts'
import { openEmpty } from '../support/engine.ts'

const step = migrations.findIndex(({ name }) => name.endsWith('_lead_outcomes'))
const created = '2026-01-01T00:00:00.000Z'
const stamps = { created_at: created, updated_at: created }

interface Lead {
  id: number
  status: number
  value: number
  closed: string | null
  owner?: number
  updated?: string
}

it('books what the log and the leads know', async () => {
  const store = await openEmpty()
  await migrate(store, migrations.slice(0, step))
  await seed(store, { adminName: 'A', adminEmail: 'a@example.com', adminPasswordHash: 'x', now: created })
  await store.db
    .insertInto('users')
    .values({
      ...stamps,
      name: 'Bob',
      name_key: 'bob',
      email: 'b@example.com',
      email_key: 'b@example.com',
      role_id: 1,
    } as never)
    .execute()
  await store.db
    .insertInto('groups')
    .values({ name: 'North', name_key: 'north', ...stamps } as never)
    .execute()
  await store.db.insertInto('user_groups').values({ user_id: 2, group_id: 1 }).execute()
  const stages: Record<number, number> = { 1: 1, 2: 5, 3: 6 }
  const row = ({ id, status, value, closed, owner = 1, updated = created }: Lead) => ({
    id,
    title: 'L',
    title_key: 'l',
    lead_value: value * 10_000,
    status,
    closed_at: closed,
    stage_changed_at: created,
    user_id: owner,
    lead_source_id: 1,
    lead_type_id: 1,
    lead_pipeline_id: 1,
    lead_pipeline_stage_id: stages[status] ?? 1,
    created_at: created,
    updated_at: updated,
  })
  const snapshot = ({ id, status, value, closed, owner = 1 }: Lead) =>
    JSON.stringify({
      id,
      lead_value: value,
      status,
      closed_at: closed,
      lost_reason: null,
      created_at: created,
      user_id: owner,
      user: { id: owner, name: owner === 2 ? 'Bob' : 'A' },
      person_id: null,
      lead_source_id: 1,
      source: { id: 1, name: 'Web' },
      lead_type_id: 1,
      type: { id: 1, name: 'New' },
      lead_pipeline_id: 1,
      pipeline: { id: 1, name: 'Default' },
      lead_pipeline_stage_id: 5,
      stage: { id: 5, name: 'Won' },
    })
  const event = (name: string, at: string, lead: Lead) => ({
    name,
    entity_type: 'leads',
    entity_id: lead.id,
    actor_type: 'system',
    origin: 'api',
    after: name === 'lead.delete.after' ? null : snapshot(lead),
    created_at: at,
  })
  const [october, november, december] = ['2026-10-10', '2026-11-10', '2026-12-10'].map((day) => `${day}T09:00:00.000Z`)
  const at = (time: string | undefined) => time ?? created
  // 1: won by Bob at 100, later handed over and worth 150. 2: won, reopened. 3: lost, deleted.
  // 4: won before the log began. 5: open. 6: won, deleted and restored.
  await store.db
    .insertInto('leads')
    .values([
      row({ id: 1, status: 2, value: 150, closed: at(october), owner: 1, updated: at(december) }),
      row({ id: 2, status: 1, value: 7, closed: null }),
      row({ id: 4, status: 2, value: 40, closed: at(october) }),
      row({ id: 5, status: 1, value: 5, closed: null }),
      row({ id: 6, status: 2, value: 60, closed: at(october), updated: at(december) }),
    ] as never)
    .execute()
  const won = (id: number, value: number, owner = 1): Lead => ({ id, status: 2, value, closed: at(october), owner })
  await store.db
    .insertInto('events')
    .values([
      event('lead.won', at(october), won(1, 100, 2)),
      event('lead.won', at(october), won(2, 7)),
      event('lead.lost', at(october), { ...won(3, 30), status: 3 }),
      event('lead.won', at(october), won(6, 60)),
      event('lead.reopened', at(november), { ...won(2, 7), status: 1, closed: null }),
      event('lead.delete.after', at(november), won(3, 30)),
      event('lead.delete.after', at(november), won(6, 60)),
      event('lead.restore', at(december), won(6, 60)),
      event('lead.restore', at(december), { ...won(5, 5), status: 1, closed: null }),
    ] as never)
    .execute()
  await migrate(store)
  const rows = await store.db
    .selectFrom('lead_outcomes')
    .selectAll()
    .orderBy('at')
    .orderBy('lead_id')
    .orderBy('id')
    .execute()
  const shown = rows.map(({ lead_id, kind, sign, amount, at, user_name }) => [
    at.slice(0, 7),
    lead_id,
    kind,
    sign,
    amount / 10_000,
    user_name,
  ])
  expect(shown).toEqual([
    ['2026-10', 1, 'won', 1, 100, 'Bob'],
    ['2026-10', 2, 'won', 1, 7, 'A'],
    ['2026-10', 3, 'lost', 1, 30, 'A'],
    ['2026-10', 4, 'won', 1, 40, 'A'],
    ['2026-10', 6, 'won', 1, 60, 'A'],
    ['2026-11', 2, 'won', -1, -7, 'A'],
    ['2026-11', 3, 'lost', -1, -30, 'A'],
    ['2026-11', 6, 'won', -1, -60, 'A'],
    ['2026-12', 1, 'won', -1, -100, 'Bob'],
    ['2026-12', 1, 'won', 1, 150, 'Bob'],
    ['2026-12', 6, 'won', 1, 60, 'A'],
  ])
  const byId = new Map(rows.map((each) => [each.id, each]))
  for (const { reverses_id, sign, lead_id, seconds } of rows) {
    expect(reverses_id === null ? 1 : -1).toBe(sign)
    expect(seconds * sign).toBe(282 * 86_400 + 9 * 3600)
    if (reverses_id !== null) expect(byId.get(reverses_id)?.lead_id).toBe(lead_id)
  }
  const groups = await store.db.selectFrom('lead_outcome_groups').select(['name']).execute()
  expect(groups).toEqual([{ name: 'North' }, { name: 'North' }])
  // The next row has a higher id than all that were booked.
  const { id } = await store.db
    .insertInto('lead_outcomes')
    .values({ ...rows[0], id: undefined } as never)
    .returning('id')
    .executeTakeFirstOrThrow()
  expect(id).toBeGreaterThan(Math.max(...byId.keys()))
  await store.close()
})
