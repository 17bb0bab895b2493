// A write ends its turn of the event loop between its statements, however many records depend on
// the record that it changes, and no statement of it reads or changes a whole table.
import { describe, expect, it, vi } from 'vitest'
import { isPostgres } from '../../support/engine.ts'
import { statementsOf } from '../../support/statements.ts'
import { countTurns } from '../../support/turns.ts'
import { useSharedServer } from '../../support/using.ts'

const server = useSharedServer()
const many = 40
let time = 0

/** Runs a request by a clock that ticks each time it is read, so that each statement takes long. */
async function measured(request: () => Promise<{ status: number; text: string }>) {
  time = Math.max(time, performance.now())
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => ++time)
  const turns = countTurns()
  try {
    const statements = await statementsOf(async () => {
      const { status, text } = await request()
      expect(status, text).toBe(200)
    })
    return { statements, turns: turns.count }
  } finally {
    turns.stop()
    clock.mockRestore()
  }
}

async function created(path: string, body: object): Promise<{ id: number }> {
  const { status, text, body: reply } = await server.admin.post(path, body)
  expect(status, text).toBe(201)
  return reply.data
}

async function createdMany(path: string, body: (index: number) => object): Promise<void> {
  for (let index = 0; index < many; index++) await created(path, body(index))
}

// On PostgreSQL, each statement takes turns of the event loop anyway.
describe.skipIf(isPostgres)('turns between the statements of one write', () => {
  const expectTurns = ({ statements, turns }: Awaited<ReturnType<typeof measured>>): void => {
    expect(statements.length).toBeGreaterThan(5 * many)
    expect(turns).toBeGreaterThan(statements.length)
  }

  it('are there while a lead and its activities are deleted and restored', async () => {
    const { admin } = server
    const person = await created('/contacts/persons', { name: 'Ann' })
    const { id } = await created('/leads', { title: 'Deal', lead_value: 1, person: { id: person.id } })
    const times = { schedule_from: '2026-03-02T10:00:00Z', schedule_to: '2026-03-02T11:00:00Z' }
    await createdMany('/activities', (index) => ({ type: 'call', title: `Call ${index}`, ...times, lead_id: id }))
    expectTurns(await measured(() => admin.delete(`/leads/${id}`)))
    expectTurns(await measured(() => admin.post(`/leads/${id}/restore`)))
    const restored = await admin.get(`/activities?lead_id=${id}`)
    expect(restored.body.meta.total).toBe(many)
  })
})

describe('the values of an attribute', () => {
  it('are found in ranges of ids, and their unique keys are deleted in parts', async () => {
    const { admin } = server
    const { id } = await created('/settings/attributes', {
      entity_type: 'persons',
      type: 'text',
      code: 'badge',
      name: 'Badge',
    })
    await createdMany('/contacts/persons', (index) => ({
      name: `Person ${index}`,
      custom_attributes: { badge: `b${index}` },
    }))
    const change = (is_unique: boolean) => () => admin.put(`/settings/attributes/${id}`, { is_unique })
    const requests = [change(true), change(false), change(true), () => admin.delete(`/settings/attributes/${id}`)]
    for (const request of requests) {
      const { statements } = await measured(request)
      const onValues = statements.filter((text) =>
        /^\s*(select|update).* "persons".*custom_attributes.* where/s.test(text),
      )
      expect(onValues.filter((text) => !/\bid\b.*(<=| in |= any)/s.test(text))).toEqual([])
      const onKeys = statements.filter((text) => /^delete from "?unique_values/.test(text))
      expect(onKeys.filter((text) => !/\blimit\b/.test(text))).toEqual([])
    }
    const left = await server.store.db.selectFrom('unique_values').selectAll().where('attribute_id', '=', id).execute()
    expect(left).toEqual([])
  })
})
