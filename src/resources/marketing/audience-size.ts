// Counts the audience of a campaign before a run: its persons, the addresses that the
// run would reach, and the addresses left out for each reason. Only persons that the caller sees
// count. Otherwise the numbers would tell whether an address belongs to a hidden person.
import type { Schema } from '../../contract/types.ts'
import { type Context, canCall } from '../../kernel/context.ts'
import type { Handler } from '../../kernel/handler.ts'
import { yieldToEventLoop } from '../../kernel/runtime/cooperative.ts'
import { persons } from '../persons/resource.ts'
import { primaryAddressIn } from './addresses.ts'
import { audienceProblem, nextPersons, storedAudience } from './audience.ts'
import { campaigns } from './campaigns.ts'
import { findExclusions } from './exclusions.ts'
import { occurrenceOf } from './occurrence.ts'
import { addressesInLedger } from './queue.ts'

/** The number of persons that one query reads. */
const atOnce = 200

export const getCampaignAudience: Handler<'getCampaignAudience'> = async (ctx, { params }) => ({
  data: await countAudience(ctx, await campaigns.get(ctx, params.id)),
})

/**
 * Counts the persons and addresses for the next run of the campaign. Reads the persons in batches,
 * and yields to other requests between batches. When the audience has a problem, `problem`
 * describes it and all counts are 0.
 */
export async function countAudience(
  ctx: Context,
  { id, marketing_event, audience: shown }: Pick<Schema<'Campaign'>, 'id' | 'audience' | 'marketing_event'>,
): Promise<Schema<'CampaignAudienceSize'>> {
  const audience = (await storedAudience(ctx, id)) ?? shown
  const run = { campaign_id: id, occurrence: occurrenceOf(marketing_event?.date) }
  const size = {
    matched: 0,
    without_address: 0,
    duplicates: 0,
    already_sent: 0,
    suppressed: 0,
    not_subscribed: 0,
    reachable: 0,
    problem: await audienceProblem(ctx, audience),
  }
  if (size.problem !== null || !canCall(ctx, persons.listOperation)) return size
  const counted = new Set<string>()
  for (let after = 0; ; await yieldToEventLoop()) {
    const people = await nextPersons(ctx, audience, { after, limit: atOnce })
    const last = people.at(-1)
    if (!last) return size
    after = last.id
    size.matched += people.length
    const fresh: { address: string; personId: number }[] = []
    for (const { id: personId, emails } of people) {
      const address = primaryAddressIn(emails)
      if (address === null) size.without_address++
      else if (counted.has(address)) size.duplicates++
      else fresh.push({ address, personId })
      if (address !== null) counted.add(address)
    }
    const had = await addressesInLedger(ctx, run, fresh)
    const excluded = await findExclusions(
      ctx,
      fresh.map(({ address }) => address),
    )
    for (const { address } of fresh) size[had.has(address) ? 'already_sent' : (excluded.get(address) ?? 'reachable')]++
  }
}
