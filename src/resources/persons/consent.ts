// The consent of persons to receive campaigns (DOMAIN 10.1, 20.2): `subscribed` is true, false, or
// null while the person has not said. The server stores with it where and when it was set.
import { type Context, now } from '../../kernel/context.ts'
import { conditions } from '../../kernel/query/filter.ts'
import { fold } from '../../kernel/values/format.ts'
import { contactFilters } from './contacts.ts'

/**
 * Returns the columns of a consent that was sent. Returns none when the consent stays the same, so
 * that its source and date stay those of the first statement.
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
 * Returns those of the folded e-mail addresses to which no campaign may go, because a person with
 * the address has refused. When several persons have the address, one refusal suffices.
 */
export async function refusedAddresses(ctx: Context, addresses: readonly string[]): Promise<ReadonlySet<string>> {
  if (addresses.length === 0) return new Set()
  const people = (await personsWith(ctx, addresses)).where('persons.subscribed', '=', 0)
  const wanted = new Set(addresses)
  const refused = (await people.select('emails').execute()).flatMap(({ emails }) =>
    (JSON.parse(emails) as { value: string }[]).map(({ value }) => fold(value)),
  )
  return new Set(refused.filter((address) => wanted.has(address)))
}

/** Returns the ids of the persons with the address who have not refused campaigns. */
export async function subscribersWith(ctx: Context, address: string): Promise<number[]> {
  const people = (await personsWith(ctx, [address])).where((eb) =>
    eb.or([eb('persons.subscribed', 'is', null), eb('persons.subscribed', '=', 1)]),
  )
  return (await people.select('id').orderBy('id').execute()).map(({ id }) => id)
}

/** Selects the persons of all owners who have one of the addresses. */
async function personsWith(ctx: Context, addresses: readonly string[]) {
  const query = { email: addresses }
  let people = ctx.db.selectFrom('persons')
  for (const condition of conditions(ctx, query, await contactFilters(ctx, query), [])) people = people.where(condition)
  return people
}
