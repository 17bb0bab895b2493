// An installation that has the workflows of an earlier version: those that were never edited tell
// participants only on request, and a third one cancels meetings.
import { expect, it } from 'vitest'
import { migrate, migrations } from '../../db/migrate.ts'
import { seed } from '../../db/seed.ts'
import { openEmpty } from '../support/engine.ts'

const step = migrations.findIndex(({ name }) => name.endsWith('_activity_notify'))
const seeds = { adminName: 'A', adminEmail: 'a@example.com', adminPasswordHash: 'x', now: '2026-01-01T00:00:00.000Z' }
const earlier = [{ attribute: 'type', operator: '{}', value: ['call'] }]

it.each([
  ['never edited', 1, [3, 4, 3]],
  ['edited', 2, [1, 1]],
])('workflows that were %s', async (_which, version, conditions) => {
  const store = await openEmpty()
  await migrate(store, migrations.slice(0, step))
  await seed(store, seeds)
  await store.db.deleteFrom('stored_references').where('from_id', '=', 3).execute()
  await store.db.deleteFrom('workflows').where('id', '=', 3).execute()
  await store.db.deleteFrom('email_templates').where('id', '=', 3).execute()
  await store.db
    .updateTable('workflows')
    .set({ version, conditions: JSON.stringify(earlier) })
    .execute()
  await migrate(store)
  const workflows = await store.db.selectFrom('workflows').selectAll().orderBy('id').execute()
  expect(workflows.map((row) => (JSON.parse(row.conditions) as unknown[]).length)).toEqual(conditions)
  const [, , cancelling] = workflows
  const references = await store.db
    .selectFrom('stored_references')
    .selectAll()
    .where('from_id', '=', cancelling?.id ?? 0)
    .execute()
  expect(references.map(({ from_type, to_type }) => [from_type, to_type])).toEqual(
    cancelling ? [['workflows', 'email-templates']] : [],
  )
  if (cancelling) {
    const [action] = JSON.parse(cancelling.actions) as { value: number }[]
    const template = await store.db
      .selectFrom('email_templates')
      .selectAll()
      .where('id', '=', action?.value ?? 0)
    expect((await template.executeTakeFirst())?.name).toBe('Activity cancelled')
  }
  await store.close()
})
