// The ledger of campaigns (DOMAIN 20.2): a row for each campaign, occurrence and address, which is why no address gets the same
// twice. Who sees a person sees what went to it; what went to a deleted person is for global viewers.
import type { Selectable } from 'kysely'
import type { DB } from '../../../db/tables.gen.ts'
import type { Schema } from '../../contract/types.ts'
import { value } from '../../kernel/filter.ts'
import type { Handler } from '../../kernel/handler.ts'
import { ledgerPage } from '../../kernel/ledger.ts'
import { visible } from '../../kernel/visibility.ts'
import { personRef } from '../persons/contacts.ts'
import { campaigns } from './campaigns.ts'

export type Send = Selectable<DB['campaign_sends']>
type Shown = Pick<Send, 'id' | 'occurrence' | 'person_id' | 'address' | 'state' | 'error' | 'sent_at' | 'created_at'>

export const presentSend = (
  row: Shown,
  person: { name: string | null; emails: string | null },
): Schema<'CampaignSend'> => ({
  id: row.id,
  occurrence: row.occurrence,
  person_id: row.person_id,
  person: row.person_id === null ? null : personRef(row.person_id, person.name ?? '', person.emails ?? '[]'),
  address: row.address,
  state: row.state as Schema<'CampaignSend'>['state'],
  error: row.error,
  sent_at: row.sent_at,
  created_at: row.created_at,
})

export const listCampaignSends: Handler<'listCampaignSends'> = async (ctx, { params, query }) => {
  await campaigns.locate(ctx, params.id)
  const rows = ctx.db
    .selectFrom('campaign_sends')
    .leftJoin('persons', 'persons.id', 'campaign_sends.person_id')
    .select([
      'campaign_sends.id',
      'campaign_sends.occurrence',
      'campaign_sends.person_id',
      'campaign_sends.address',
      'campaign_sends.state',
      'campaign_sends.error',
      'campaign_sends.sent_at',
      'campaign_sends.created_at',
      'persons.name',
      'persons.emails',
    ])
    .where('campaign_sends.campaign_id', '=', params.id)
    .where(visible(ctx, 'persons.user_id'))
  return ledgerPage(ctx, rows, query, {
    fields: {
      state: value('campaign_sends.state'),
      occurrence: value('campaign_sends.occurrence'),
      person_id: value('campaign_sends.person_id'),
    },
    sort: { id: 'campaign_sends.id', sent_at: 'campaign_sends.sent_at' },
    id: 'campaign_sends.id',
    present: (page: (Shown & { name: string | null; emails: string | null })[]) =>
      page.map((row) => presentSend(row, row)),
  })
}
