// The workflow action that sends the event of the run to a webhook.
import type { Context } from '../../kernel/context.ts'
import { triggerWebhook } from '../webhooks/deliveries.ts'
import { type ActionEffect, actionRefused } from './action-subject.ts'

async function nameOf({ db }: Context, id: unknown): Promise<string> {
  const row = await db.selectFrom('webhooks').select('name').where('id', '=', Number(id)).executeTakeFirst()
  if (!row) throw actionRefused(`The webhook ${Number(id)} has been deleted.`)
  return row.name
}

export const webhookActions = {
  trigger_webhook: {
    act: async (ctx, _about, { value }, cause) => ({ delivery_id: await triggerWebhook(ctx, Number(value), cause) }),
    describe: async (ctx, _about, { value }) => `Call the webhook ${await nameOf(ctx, value)}.`,
  },
} satisfies Record<string, ActionEffect>
