// Removes a deleted e-mail template from the campaigns that refer to it. These
// campaigns are inactive, because the template of an active campaign cannot be deleted.
import type { DeleteHook } from '../../kernel/history/delete-hooks.ts'
import { write } from '../../kernel/write/write.ts'
import { campaigns } from './campaigns.ts'

const clearTemplate: DeleteHook = async (ctx, templateId) => {
  const rows = await ctx.db
    .selectFrom('marketing_campaigns')
    .select('id')
    .where('email_template_id', '=', templateId)
    .orderBy('id')
    .execute()
  for (const { id } of rows) {
    const about = { entity: 'campaigns', input: { email_template_id: null }, id }
    await write(
      ctx,
      'settings.marketing.campaigns.update',
      { ...about, before: await campaigns.get(ctx, id) },
      async (ctx) => {
        await ctx.db.updateTable('marketing_campaigns').set({ email_template_id: null }).where('id', '=', id).execute()
        await campaigns.touch(ctx, id)
        return { id, entity: await campaigns.get(ctx, id) }
      },
    )
  }
}

export const deleteHooks = { 'email-templates': clearTemplate }
