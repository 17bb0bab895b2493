// Campaigns whose day was missed because no server ran for more than a day.
import type { Context } from '../../kernel/context.ts'
import type { Snapshot } from '../../kernel/write/events.ts'
import { emitOnly, transaction } from '../../kernel/write/write.ts'
import { campaigns } from './campaigns.ts'

/** Announces the active campaigns with a day between the two days, by an event and a log line. */
export const announceMissed = (ctx: Context, { after, before }: { after: string; before: string }): Promise<void> =>
  transaction(ctx, async (ctx) => {
    const rows = await ctx.db
      .selectFrom('marketing_campaigns')
      .innerJoin('marketing_events', 'marketing_events.id', 'marketing_campaigns.marketing_event_id')
      .select(['marketing_campaigns.id', 'marketing_events.date'])
      .where('marketing_campaigns.is_active', '=', 1)
      .where('marketing_campaigns.email_template_id', 'is not', null)
      .where('marketing_events.date', '>', after)
      .where('marketing_events.date', '<', before)
      .orderBy('marketing_campaigns.id')
      .execute()
    for (const { id, date } of rows) {
      ctx.services.log.warn({ campaign: id, day: date }, 'A campaign did not run: no server ran on its day.')
      const shown = (await campaigns.get(ctx, id)) as Snapshot
      await emitOnly(ctx, 'marketing.campaign.missed', { entity: 'campaigns', id, shown })
    }
  })
