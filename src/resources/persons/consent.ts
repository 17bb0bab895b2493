// The consent of persons to receive campaigns: `subscribed` is true, false, or
// null when unknown. The server also stores the source and the time of its last change.
import { type Context, now } from '../../kernel/context.ts'
import { conditions } from '../../kernel/query/filter.ts'
import { visible } from '../../kernel/query/visibility.ts'
import { yieldToEventLoop } from '../../kernel/runtime/cooperative.ts'
import { fold } from '../../kernel/values/format.ts'
import { contactFilter } from './contacts.ts'

/**
 * Returns the columns to store for `subscribed` in the request body. Returns no columns when the
 * value stays the same, so its stored source and time stay too.
 */
export function consentColumns(
  ctx: Context,
  sent: boolean | null | undefined,
  current: { subscribed: number | null } | null,
) {
  if (sent === undefined) return {}
  const subscribed = sent === null ? null : Number(sent)
  if (subscribed === (current?.subscribed ?? null)) return {}
  if (subscribed === null) return { subscribed, subscribed_source: null, subscribed_at: null }
  const source = ctx.operation === 'unsubscribe' ? 'unsubscribe_link' : ctx.origin
  return { subscribed, subscribed_source: source, subscribed_at: now(ctx) }
}

/**
 * The number of addresses in one query. Addresses that need not be unique become a chain of
 * comparisons, and SQLite allows a thousand.
 */
const atOnce = 400

/**
 * Returns the given addresses that belong to a person who has refused campaigns and whom the caller
 * sees; a run has no user and sees all. `addresses` must be folded.
 */
export async function refusedAddresses(ctx: Context, addresses: readonly string[]): Promise<ReadonlySet<string>> {
  const wanted = new Set(addresses)
  const refused = new Set<string>()
  for (let from = 0; from < addresses.length; from += atOnce) {
    if (from > 0) await yieldToEventLoop()
    const people = (await personsWith(ctx, addresses.slice(from, from + atOnce)))
      .where('persons.subscribed', '=', 0)
      .where(visible(ctx, 'persons.user_id'))
    for (const { emails } of await people.select('emails').execute())
      for (const { value } of JSON.parse(emails) as { value: string }[]) refused.add(fold(value))
  }
  return new Set([...refused].filter((address) => wanted.has(address)))
}

/** Returns the ids of the persons with the address who have not refused campaigns. */
export async function subscribersWith(ctx: Context, address: string): Promise<number[]> {
  const people = (await personsWith(ctx, [address])).where((eb) =>
    eb.or([eb('persons.subscribed', 'is', null), eb('persons.subscribed', '=', 1)]),
  )
  return (await people.select('id').orderBy('id').execute()).map(({ id }) => id)
}

/** Selects the persons of all owners who have one of the addresses. */
export async function personsWith(ctx: Context, addresses: readonly string[]) {
  const query = { email: addresses }
  let people = ctx.db.selectFrom('persons')
  for (const condition of conditions(ctx, query, { email: await contactFilter('emails')(ctx) }, []))
    people = people.where(condition)
  return people
}
