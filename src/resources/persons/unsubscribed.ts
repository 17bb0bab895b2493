// Computes `unsubscribed_at` of persons: the time at which the first of a person's
// addresses was suppressed. The value is computed from the suppressions and not stored.
import type { Schema } from '../../contract/types.ts'
import { type Context, now } from '../../kernel/context.ts'
import { conditions } from '../../kernel/query/filter.ts'
import { fold } from '../../kernel/values/format.ts'
import { contactFilter } from './contacts.ts'

type Person = Pick<Schema<'Person'>, 'emails' | 'unsubscribed_at'>

/** Sets `unsubscribed_at` of a page of persons, with one query. */
export async function loadUnsubscribedAt({ db }: Context, people: readonly Person[]): Promise<void> {
  const addresses = [...new Set(people.flatMap(({ emails }) => emails.map(({ value }) => fold(value))))]
  if (addresses.length === 0) return
  const rows = await db
    .selectFrom('suppressions')
    .select(['address', 'created_at'])
    .where('address', 'in', addresses)
    .execute()
  const since = new Map(rows.map(({ address, created_at }) => [address, created_at]))
  for (const person of people)
    person.unsubscribed_at = person.emails.flatMap(({ value }) => since.get(fold(value)) ?? []).sort()[0] ?? null
}

/**
 * Raises the version of the persons who have the address. Suppressing the address, or ending the
 * suppression, changes `unsubscribed_at` of these persons.
 */
export async function touchPersonsWithAddress(ctx: Context, address: string): Promise<void> {
  const query = { email: [address] }
  let changed = ctx.db
    .updateTable('persons')
    .set(({ eb }) => ({ version: eb('version', '+', 1), updated_at: now(ctx) }))
  for (const condition of conditions(ctx, query, { email: await contactFilter('emails')(ctx) }, []))
    changed = changed.where(condition)
  await changed.execute()
}
