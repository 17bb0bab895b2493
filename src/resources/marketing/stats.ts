// Counts the e-mails of campaigns by state, with one query for a page of campaigns.
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'

type Campaign = Pick<Schema<'Campaign'>, 'id' | 'stats'>
type State = Schema<'CampaignSend'>['state']

export async function loadStats({ db }: Context, campaigns: readonly Campaign[]): Promise<void> {
  const rows = await db
    .selectFrom('campaign_sends')
    .select(({ fn }) => ['campaign_id', 'state', fn.countAll<number>().as('count')])
    .where(
      'campaign_id',
      'in',
      campaigns.map(({ id }) => id),
    )
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
