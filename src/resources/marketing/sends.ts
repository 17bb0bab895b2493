// The ledger of campaign e-mails. It has one row per campaign, occurrence and
// address, so no address gets the same e-mail twice. A caller sees the rows of persons that the
// caller may see. Rows of deleted persons are visible only to callers who see all records.
import { operations } from '../../contract/operations.gen.ts'
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { notFound } from '../../kernel/errors.ts'
import type { Handler } from '../../kernel/handler.ts'
import { always, never, type Sight } from '../../kernel/query/event-visibility.ts'
import { valueField } from '../../kernel/query/filter.ts'
import { recordPage } from '../../kernel/query/page.ts'
import { canSeeOwner, visible } from '../../kernel/query/visibility.ts'
import { personRef } from '../persons/contacts.ts'
import { userRef } from '../users/owner.ts'
import { pictureUrl } from '../users/picture.ts'
import { campaigns } from './campaigns.ts'
import type { Send } from './sending.ts'

const columns = [
  'id',
  'occurrence',
  'person_id',
  'address',
  'state',
  'error',
  'sent_at',
  'resent_at',
  'resent_by_id',
  'created_at',
] as const
type Shown = Pick<Send, (typeof columns)[number]>

interface Joined {
  person_name: string | null
  person_emails: string | null
  user_name: string | null
  user_email: string | null
  user_image: number | null
}

export const presentSend = (ctx: Context, row: Shown & Joined): Schema<'CampaignSend'> => ({
  id: row.id,
  occurrence: row.occurrence,
  person_id: row.person_id,
  person: row.person_id === null ? null : personRef(row.person_id, row.person_name ?? '', row.person_emails ?? '[]'),
  address: row.address,
  state: row.state as Schema<'CampaignSend'>['state'],
  error: row.error,
  sent_at: row.sent_at,
  resent_at: row.resent_at,
  resent_by: userRef(row.resent_by_id, row.user_name, row.user_email, pictureUrl(ctx, row.user_image)),
  created_at: row.created_at,
})

const rowsInSight = (ctx: Context) =>
  ctx.db
    .selectFrom('campaign_sends')
    .leftJoin('persons', 'persons.id', 'campaign_sends.person_id')
    .where(visible(ctx, 'persons.user_id'))

/**
 * Visibility rule for the events of ledger rows. A caller who sees a row also sees its events.
 * Deleting a campaign deletes its rows; then only callers who see all records see the events.
 */
export const sendSight: Sight = {
  lists: operations.listCampaignSends,
  records: {
    table: 'campaign_sends',
    deleted: null,
    inSight: (ctx) => rowsInSight(ctx).select('campaign_sends.id'),
    wasInSight: (ctx) => (canSeeOwner(ctx, null) ? always : never),
  },
}

/** Selects the ledger rows of a campaign that the caller may see. */
const sendsOf = (ctx: Context, campaign: number) =>
  rowsInSight(ctx)
    .leftJoin('users', 'users.id', 'campaign_sends.resent_by_id')
    .select(columns.map((each) => `campaign_sends.${each}` as const))
    .select(['persons.name as person_name', 'persons.emails as person_emails'])
    .select(['users.name as user_name', 'users.email as user_email', 'users.image_file_id as user_image'])
    .where('campaign_sends.campaign_id', '=', campaign)

export const listCampaignSends: Handler<'listCampaignSends'> = async (ctx, { params, query }) => {
  await campaigns.assertVisible(ctx, params.id)
  return recordPage(ctx, sendsOf(ctx, params.id), query, {
    fields: {
      state: valueField('campaign_sends.state'),
      occurrence: valueField('campaign_sends.occurrence'),
      person_id: valueField('campaign_sends.person_id'),
    },
    sort: { id: 'campaign_sends.id', sent_at: 'campaign_sends.sent_at' },
    id: 'campaign_sends.id',
    present: (page: (Shown & Joined)[]) => page.map((row) => presentSend(ctx, row)),
  })
}

/**
 * Returns one ledger row as a reply. Throws 404 when the row does not exist or the caller may not
 * see it.
 */
export async function loadSend(ctx: Context, campaign: number, id: number): Promise<Schema<'CampaignSend'>> {
  const row = await sendsOf(ctx, campaign).where('campaign_sends.id', '=', id).executeTakeFirst()
  if (!row) throw notFound('e-mail of this campaign', id)
  return presentSend(ctx, row)
}
