// Queues an uncertain e-mail of a campaign again. This needs the decision of a user,
// because the recipient may have received the first copy.
import { now, requireUser } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import type { Handler } from '../../kernel/handler.ts'
import { transaction, write } from '../../kernel/write/write.ts'
import { campaigns } from './campaigns.ts'
import { scheduleSending } from './sending.ts'
import { loadSend } from './sends.ts'

export const resendCampaignSend: Handler<'resendCampaignSend'> = (ctx, { params: { id: campaign, send_id: id } }) =>
  transaction(ctx, async (ctx) => {
    const { is_active: isActive } = await campaigns.get(ctx, campaign)
    const before = await loadSend(ctx, campaign, id)
    if (before.state !== 'uncertain')
      throw new Problem('state_conflict', `The e-mail is ${before.state}; only an uncertain one can be sent again.`)
    if (!isActive) throw new Problem('state_conflict', 'The campaign is not active.')
    const about = {
      entity: 'sends',
      id,
      input: {},
      before: { ...before },
      related: { type: 'campaigns', id: campaign },
    }
    const queue = { state: 'queued', error: null, claim: null, attempts: 0, run_at: now(ctx) } as const
    await write(ctx, 'marketing.send.resend', about, async (ctx) => {
      await ctx.db
        .updateTable('campaign_sends')
        .set({ ...queue, resent_at: now(ctx), resent_by_id: requireUser(ctx).id, updated_at: now(ctx) })
        .where('id', '=', id)
        .execute()
      await scheduleSending(ctx)
      return { id, entity: { ...(await loadSend(ctx, campaign, id)) } }
    })
    return { data: await loadSend(ctx, campaign, id), message: 'E-mail queued again.' }
  })
