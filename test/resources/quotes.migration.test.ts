// An installation with quotes and workflows of an earlier version: its quotes are drafts that lose
// nothing, and its workflows keep their events.
import { expect, it } from 'vitest'
import { migrate, migrations } from '../../db/migrate.ts'
import { seed } from '../../db/seed.ts'
import { openEmpty } from '../support/engine.ts'

const step = migrations.findIndex(({ name }) => name.endsWith('_quote_documents'))
const now = '2026-01-01T00:00:00.000Z'
const stamps = { created_at: now, updated_at: now }

it('quotes become drafts, and workflows keep their events', async () => {
  const store = await openEmpty()
  await migrate(store, migrations.slice(0, step))
  await seed(store, { adminName: 'A', adminEmail: 'a@example.com', adminPasswordHash: 'x', now })
  const before = await store.db.selectFrom('workflows').select(['id', 'event']).orderBy('id').execute()
  const person = { name: 'Ada', name_key: 'ada', emails: '[]', contact_numbers: '[]', custom_attributes: '{}' }
  await store.db
    .insertInto('persons')
    .values({ ...person, ...stamps } as never)
    .execute()
  const quote = { subject: 'Old', subject_key: 'old', person_id: 1, user_id: 1, billing_address: '{}', grand_total: 5 }
  await store.db
    .insertInto('quotes')
    .values({ ...quote, expiry_date: '2025-12-31', ...stamps })
    .execute()
  await migrate(store)
  const [row] = await store.db.selectFrom('quotes').selectAll().execute()
  expect(row).toMatchObject({ status: 'draft', number: null, revision: 1, taxes: null, grand_total: 5 })
  expect(await store.db.selectFrom('workflows').select(['id', 'event']).orderBy('id').execute()).toEqual(before)
  await store.db.updateTable('workflows').set({ event: 'quote.sent' }).where('id', '=', 1).execute()
  await expect(
    store.db
      .updateTable('workflows')
      .set({ event: 'quote.lost' as never })
      .where('id', '=', 1)
      .execute(),
  ).rejects.toThrow()
  await store.close()
})
