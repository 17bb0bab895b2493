// Counts the e-mails of campaigns by state, with one query for a page of campaigns. As in the
// ledger, e-mails to persons whom the caller does not see do not count.
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { visible } from '../../kernel/query/visibility.ts'

type Campaign = Pick<Schema<'Campaign'>, 'id' | 'stats'>
type State = Schema<'CampaignSend'>['state']

export async function loadStats(ctx: Context, campaigns: readonly Campaign[]): Promise<void> {
  const { db } = ctx
  const isLimited = (ctx.user?.visibleOwners ?? null) !== null
  const inSight = db.selectFrom('persons').select('id').where(visible(ctx, 'persons.user_id'))
  const rows = await db
    .selectFrom('campaign_sends')
    .select(({ fn }) => ['campaign_id', 'state', fn.countAll<number>().as('count')])
    .where(
      'campaign_id',
      'in',
      campaigns.map(({ id }) => id),
    )
    .$if(isLimited, (sends) => sends.where('person_id', 'in', inSight))
    .groupBy(['campaign_id', 'state'])
    .execute()
  const byId = new Map(campaigns.map((campaign) => [campaign.id, campaign]))
  for (const { campaign_id, state, count } of rows) {
    const stats = byId.get(campaign_id)?.stats
    if (stats) stats[state as State] = Number(count)
  }
}

export const hasQueued = async ({ db }: Context, id: number): Promise<boolean> =>
  (await db
    .selectFrom('campaign_sends')
    .select('id')
    .where('campaign_id', '=', id)
    .where('state', '=', 'queued')
    .limit(1)
    .executeTakeFirst()) !== undefined
