// Sends a test of a campaign to users. A test creates no ledger row: it does not
// count as sent, and the address still gets the campaign.
import { randomUUID } from 'node:crypto'
import { defineJob, enqueueAll } from '../../jobs/queue.ts'
import type { Context } from '../../kernel/context.ts'
import { invalid, Problem, ValidationErrors } from '../../kernel/errors.ts'
import type { Handler } from '../../kernel/handler.ts'
import { checkReferences } from '../../kernel/resource/references.ts'
import { transaction } from '../../kernel/write/write.ts'
import { MailRefused } from '../../mail/outbound.ts'
import { withGracePeriod } from '../../mail/send-grace.ts'
import { textsOfPerson } from '../persons/language.ts'
import { users } from '../users/resource.ts'
import { campaigns } from './campaigns.ts'
import { campaignText } from './content.ts'
import { examplePerson, fillForPerson } from './preview.ts'
import { exampleUrl } from './unsubscribe.ts'

/** The prefix of the subject of every test. */
const mark = '[Test]'

interface TestMail {
  campaign_id: number
  to: string
  subject: string
  html: string
  text: string
}

export const testCampaign: Handler<'testCampaign'> = (ctx, { params, body }) =>
  transaction(ctx, async (ctx) => {
    const campaign = await campaigns.get(ctx, params.id)
    if (campaign.email_template_id === null) throw new Problem('state_conflict', 'The campaign has no template.')
    const addresses = await addressesOfUsers(ctx, body.user_ids)
    const personId = await examplePerson(ctx, body.person_id, 'person_id')
    const filled = await fillForPerson(ctx, campaign, personId)
    if (typeof filled === 'string') throw invalid({ person_id: [filled] })
    const subject = `${mark} ${filled.subject}`
    const text = campaignText(filled.content, exampleUrl(ctx), await textsOfPerson(ctx, personId))
    const mails = addresses.map((to) => ({
      payload: { campaign_id: campaign.id, to, subject, html: filled.content, text },
    }))
    await enqueueAll(ctx, sendTest, mails)
    return { data: { subject, person_id: personId, addresses }, message: 'Test queued.' }
  })

/** Returns the addresses of users. Throws 422 for users who are inactive or not visible. */
async function addressesOfUsers(ctx: Context, ids: readonly number[]): Promise<string[]> {
  const errors = new ValidationErrors()
  await checkReferences({ ctx, errors }, 'user_ids', ids, users)
  errors.throwIfAny()
  const rows = await ctx.db.selectFrom('users').select(['id', 'email', 'is_active']).where('id', 'in', ids).execute()
  const byId = new Map(rows.map((row) => [row.id, row]))
  for (const [index, id] of ids.entries())
    if (byId.get(id)?.is_active !== 1) errors.invalid(`user_ids.${index}`, 'The user is inactive.')
  errors.throwIfAny()
  return ids.flatMap((id) => byId.get(id)?.email ?? [])
}

/** Sends one test. A refused test is not sent again, because the refusal is final. */
export const sendTest = defineJob<TestMail>({
  kind: 'campaigns.test',
  retryAfterSeconds: [60, 300],
  isMail: true,
  async run(ctx, { campaign_id, to, subject, html, text }, { signal }) {
    const { mailer, log, clock, config } = ctx.services
    const message = {
      messageId: `${randomUUID()}@${config.mailDomain}`,
      date: clock.now(),
      from: { address: config.mailFrom, name: config.mailFromName },
      to: [to],
      cc: [],
      bcc: [],
      subject,
      html,
      text,
      references: [],
      headers: { 'Auto-Submitted': 'auto-generated' },
      attachments: [],
    }
    try {
      await mailer.send(message, withGracePeriod(signal))
    } catch (cause) {
      if (!(cause instanceof MailRefused)) throw cause
      log.warn({ campaign: campaign_id, err: cause }, 'The mail server refused the test of a campaign.')
    }
  },
})
