// Marketing events: the dates on which campaigns run.
import type { Schema } from '../../contract/types.ts'
import { inUse } from '../../kernel/errors.ts'
import { textField, valueField } from '../../kernel/query/filter.ts'
import { defineResource } from '../../kernel/resource/define-resource.ts'
import { nameKey } from '../../kernel/resource/named-references.ts'
import { uniqueName } from '../../kernel/resource/references.ts'
import { today } from '../../kernel/values/format.ts'

export const marketingEvents = defineResource({
  noun: 'marketing event',
  table: 'marketing_events',
  externalIds: { table: 'marketing_event_external_ids', column: 'marketing_event_id' },
  namedBy: { keys: { name: nameKey } },
  operations: {
    list: 'listMarketingEvents',
    get: 'getMarketingEvent',
    create: 'createMarketingEvent',
    update: 'updateMarketingEvent',
    delete: 'deleteMarketingEvent',
  },
  rows: (_ctx, db) => db.selectFrom('marketing_events').selectAll('marketing_events'),
  sort: {
    id: 'marketing_events.id',
    name: 'marketing_events.name_key',
    date: 'marketing_events.date',
    created_at: 'marketing_events.created_at',
  },
  filter: { name: textField('marketing_events.name_key'), date: valueField('marketing_events.date') },
  search: [{ key: 'marketing_events.name_key' }, { text: 'marketing_events.description' }],
  withoutColumn: {},
  toRow: async ({ name, description, date }, writing) => {
    const { ctx, current, errors } = writing
    // Only a changed date is checked, so that an event with a past date stays editable.
    if (date && date !== current?.date && date < today(ctx.time, ctx.services.config.timezone))
      errors.invalid('date', 'Must be today or later.')
    const about = { table: 'marketing_events', entity: 'events', noun: 'marketing event' } as const
    return { columns: { ...(await uniqueName(writing, about, name)), description, date } }
  },
  toReply: (row): Schema<'MarketingEvent'> => ({
    id: row.id,
    name: row.name,
    description: row.description,
    date: row.date,
    external_ids: {},
    created_at: row.created_at,
    updated_at: row.updated_at,
    version: row.version,
  }),
  beforeDelete: async (ctx, { id, name }) => {
    const campaigns = await ctx.db
      .selectFrom('marketing_campaigns')
      .select('id')
      .where('marketing_event_id', '=', id)
      .orderBy('id')
      .limit(20)
      .execute()
    if (campaigns.length === 0) return
    throw inUse(
      `Campaigns use the event ${name}.`,
      campaigns.map((campaign) => ({ entity_type: 'campaigns', id: campaign.id, field: 'marketing_event_id' })),
    )
  },
})
