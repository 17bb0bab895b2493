// Counts the audience of a campaign before a run: its persons, the addresses that the
// run would reach, and the addresses left out for each reason. Only persons that the caller sees
// count. Otherwise the numbers would tell whether an address belongs to a hidden person. Only the
// first persons of a large audience count, so that the cost of a request has a limit.
import type { Schema } from '../../contract/types.ts'
import { type Context, canCall } from '../../kernel/context.ts'
import type { Handler } from '../../kernel/handler.ts'
import { untilNextCommitFor } from '../../kernel/query/caller-query.ts'
import { yieldToEventLoop } from '../../kernel/runtime/cooperative.ts'
import { persons } from '../persons/resource.ts'
import { primaryAddressIn } from './addresses.ts'
import { type Audience, audienceProblem, nextPersons, storedAudience } from './audience.ts'
import { campaigns } from './campaigns.ts'
import { findExclusions } from './exclusions.ts'
import { occurrenceOf } from './occurrence.ts'
import { addressesInLedger, type CampaignRun } from './queue.ts'

/** The number of persons that are counted. The contract names it. */
const mostPersons = 10_000

export const getCampaignAudience: Handler<'getCampaignAudience'> = async (ctx, { params }) => ({
  data: await countAudience(ctx, await campaigns.get(ctx, params.id)),
})

type CountedCampaign = Pick<Schema<'Campaign'>, 'id' | 'audience' | 'marketing_event'>

/**
 * Counts the persons and addresses for the next run of the campaign. Keeps the result until the
 * next commit. When the audience has a problem, `problem` describes it and all counts are 0.
 */
export async function countAudience(
  ctx: Context,
  { id, marketing_event, audience: shown }: CountedCampaign,
): Promise<Schema<'CampaignAudienceSize'>> {
  const run = { campaign_id: id, occurrence: occurrenceOf(marketing_event?.date) }
  return untilNextCommitFor(ctx, `audience of ${id} ${run.occurrence}`, async () =>
    countPersons(ctx, run, (await storedAudience(ctx, id)) ?? shown),
  )
}

/** Finds the persons with one query, and looks up their addresses with turns between. */
async function countPersons(
  ctx: Context,
  run: CampaignRun,
  audience: Audience,
): Promise<Schema<'CampaignAudienceSize'>> {
  const size = {
    is_complete: true,
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
  const found = await nextPersons(ctx, audience, { after: 0, limit: mostPersons + 1 })
  const people = found.slice(0, mostPersons)
  size.is_complete = found.length === people.length
  size.matched = people.length
  const counted = new Map<string, number>()
  for (const { id, emails } of people) {
    const address = primaryAddressIn(emails)
    if (address === null) size.without_address++
    else if (counted.has(address)) size.duplicates++
    else counted.set(address, id)
  }
  await yieldToEventLoop()
  const fresh = [...counted].map(([address, personId]) => ({ address, personId }))
  const had = await addressesInLedger(ctx, run, fresh)
  await yieldToEventLoop()
  const excluded = await findExclusions(ctx, [...counted.keys()])
  for (const address of counted.keys())
    size[had.has(address) ? 'already_sent' : (excluded.get(address) ?? 'reachable')]++
  return size
}
