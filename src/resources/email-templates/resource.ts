// E-mail templates: subjects and contents with placeholders. This resource has no
// children and no owners, so it is the simplest model for a new resource.
import { operations } from '../../contract/operations.gen.ts'
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { inUse } from '../../kernel/errors.ts'
import { rulesNaming } from '../../kernel/history/stored-references.ts'
import { textField } from '../../kernel/query/filter.ts'
import { defineResource, type Writing } from '../../kernel/resource/define-resource.ts'
import { nameKey } from '../../kernel/resource/named-references.ts'
import { uniqueName } from '../../kernel/resource/references.ts'
import { oneLine } from '../../kernel/values/format.ts'
import { requireTokenAbilities } from '../users/acting-user.ts'
import { referencesInText } from './placeholder-references.ts'
import { findUnknownPlaceholders } from './unknown-placeholders.ts'

interface Texts {
  subject: string | undefined
  content: string | undefined
}

/** Reports unknown placeholders. `unsubscribe_url` is allowed because campaigns fill it in. */
async function checkPlaceholders({ ctx, current, errors }: Writing<Texts>, texts: Texts): Promise<void> {
  for (const field of ['subject', 'content'] as const) {
    const about = { before: current?.[field] ?? '', more: ['unsubscribe_url'] }
    for (const sentence of await findUnknownPlaceholders(ctx, texts[field], about)) errors.invalid(field, sentence)
  }
}

export const emailTemplates = defineResource({
  noun: 'e-mail template',
  table: 'email_templates',
  externalIds: { table: 'email_template_external_ids', column: 'email_template_id' },
  namedBy: { keys: { name: nameKey } },
  operations: {
    list: 'listEmailTemplates',
    get: 'getEmailTemplate',
    create: 'createEmailTemplate',
    update: 'updateEmailTemplate',
    delete: 'deleteEmailTemplate',
  },
  rows: (_ctx, db) => db.selectFrom('email_templates').selectAll('email_templates'),
  sort: { id: 'email_templates.id', name: 'email_templates.name_key', created_at: 'email_templates.created_at' },
  filter: { name: textField('email_templates.name_key') },
  search: [{ key: 'email_templates.name_key' }, { text: 'email_templates.subject' }],
  withoutColumn: {},
  toRow: async ({ name, subject, content }, writing) => {
    await checkPlaceholders(writing, { subject, content })
    const { ctx, current } = writing
    // Campaigns and workflows send the template with all rights of their users.
    const isChange =
      current &&
      [subject ?? current.subject, content ?? current.content].join('\n') !==
        [current.subject, current.content].join('\n')
    if (isChange && (await isSent(ctx, current.id)))
      requireTokenAbilities(ctx, [operations.getPerson, operations.createEmail])
    const about = { table: 'email_templates', entity: 'email-templates', noun: 'e-mail template' } as const
    return { columns: { ...(await uniqueName(writing, about, name)), subject: oneLine(subject), content } }
  },
  toReply: (row): Schema<'EmailTemplate'> => ({
    id: row.id,
    name: row.name,
    subject: row.subject,
    content: row.content,
    external_ids: {},
    created_at: row.created_at,
    updated_at: row.updated_at,
    version: row.version,
  }),
  refersTo: async (ctx, { subject, content }) => [
    ...(await referencesInText(ctx, 'subject', subject)),
    ...(await referencesInText(ctx, 'content', content)),
  ],
  beforeDelete: async (ctx, { id, name }) => {
    const users = await activeCampaigns(ctx, id)
    if (users.length > 0) throw inUse(`${name} is in use.`, users.slice(0, 20))
  },
})

/** Whether an active campaign or a workflow sends the template. */
const isSent = async (ctx: Context, id: number): Promise<boolean> =>
  (await activeCampaigns(ctx, id)).length > 0 ||
  (await rulesNaming(ctx, { entity: 'email-templates', id })).some(({ entity }) => entity === 'workflows')

const activeCampaigns = async (ctx: Context, templateId: number) =>
  (
    await ctx.db
      .selectFrom('marketing_campaigns')
      .select('id')
      .where('email_template_id', '=', templateId)
      .where('is_active', '=', 1)
      .orderBy('id')
      .execute()
  ).map(({ id }) => ({ entity_type: 'campaigns', id, field: 'email_template_id' }))
