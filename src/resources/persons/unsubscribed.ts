// Since when a person wants no campaigns (DOMAIN 10.1): since the first of their addresses came onto the list of suppressed ones, which
// marketing keeps. It follows from that list, so it is read and not stored.
import type { Schema } from '../../contract/types.ts'
import { type Context, now } from '../../kernel/context.ts'
import { conditions } from '../../kernel/query/filter.ts'
import { fold } from '../../kernel/values/format.ts'
import { contactFilters } from './contacts.ts'

type Person = Pick<Schema<'Person'>, 'emails' | 'unsubscribed_at'>

/** For a page of persons, with one query. */
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

/** Persons with the address are shown otherwise from now on: their versions go up. */
export async function touchPersonsWithAddress(ctx: Context, address: string): Promise<void> {
  const query = { email: [address] }
  let changed = ctx.db
    .updateTable('persons')
    .set(({ eb }) => ({ version: eb('version', '+', 1), updated_at: now(ctx) }))
  for (const condition of conditions(ctx, query, await contactFilters(ctx, query), []))
    changed = changed.where(condition)
  await changed.execute()
}
