// Queues the e-mails of a campaign run (DOMAIN 20.2). Each address of each person of the audience
// gets one row in the ledger, the table campaign_sends. An address that has a row is skipped, so an
// interrupted run can continue and a repeated run adds only new addresses.
import { v7 } from 'uuid'
import { defineJob, releaseDedupeKey } from '../../jobs/queue.ts'
import { type Context, now } from '../../kernel/context.ts'
import { yieldIfDue } from '../../kernel/runtime/cooperative.ts'
import { fold } from '../../kernel/values/format.ts'
import { isVeto, longTransaction, write } from '../../kernel/write/write.ts'
import { placeholdersOfPersons } from '../email-templates/placeholder-values.ts'
import { type Audience, type AudiencePerson, audienceProblem, nextPersons, presentAudience } from './audience.ts'
import { type CampaignDraft, type FilledCampaign, fillCampaign } from './content.ts'
import { exclusionNotes, findExclusions } from './exclusions.ts'
import { scheduleSending } from './sending.ts'
import { presentSend } from './sends.ts'
import { unsubscribeUrl } from './unsubscribe.ts'

export interface CampaignRun {
  campaign_id: number
  /** The date of the campaign's event (YYYY-MM-DD); `once` for a campaign without a date. */
  occurrence: string
}

interface Recipient {
  address: string
  person: AudiencePerson
}

/** The maximum number of persons per query, addresses per lookup, and e-mails per transaction. */
const atOnce = 100

/**
 * Returns the distinct e-mail addresses in stored contact points (JSON text). The addresses are
 * folded, because addresses are stored and compared in that form.
 */
export const addressesIn = (emails: string): string[] => [
  ...new Set((JSON.parse(emails) as { value: string }[]).map(({ value }) => fold(value))),
]

export const queueMails = defineJob<CampaignRun>({
  kind: 'campaigns.queue',
  retryAfterSeconds: [10, 60, 300, 300, 1800, 1800, 7200, 7200],
  async run(ctx, run, { id, signal }) {
    await releaseDedupeKey(ctx, id)
    if (!(await queueAll(ctx, run, signal))) return { runAgainAt: ctx.services.clock.now() }
  },
})

/**
 * Queues all e-mails of a run. Returns false when `signal` aborts before all e-mails are queued.
 */
export async function queueAll(job: Context, run: CampaignRun, signal?: AbortSignal): Promise<boolean> {
  for (let after = 0; ; ) {
    const ctx: Context = { ...job, origin: 'campaign', time: job.services.clock.now() }
    const draft = await draftOf(ctx, run.campaign_id)
    if (!draft) return true
    const problem = await audienceProblem(ctx, draft.audience)
    if (problem !== null) {
      ctx.services.log.warn({ campaign: run.campaign_id }, `A campaign run ended. ${problem}`)
      return true
    }
    const people = await nextPersons(ctx, draft.audience, { after, limit: atOnce })
    const last = people.at(-1)
    if (!last) return true
    const recipients = await notYet(ctx, run, recipientsIn(people))
    for (let from = 0; from < recipients.length; from += atOnce) {
      if (signal?.aborted) return false
      await queueSome(ctx, run, draft, recipients.slice(from, from + atOnce))
    }
    if (signal?.aborted) return false
    after = last.id
  }
}

/**
 * Returns the subject of the campaign, the content of its template and its audience. Returns null
 * when the campaign or the template has been deleted.
 */
async function draftOf({ db }: Context, id: number): Promise<(CampaignDraft & { audience: Audience }) | null> {
  const row = await db
    .selectFrom('marketing_campaigns')
    .innerJoin('email_templates', 'email_templates.id', 'marketing_campaigns.marketing_template_id')
    .select(['marketing_campaigns.subject', 'email_templates.content'])
    .select(['audience_type', 'audience_filter', 'audience_tag_id', 'audience_import_id'])
    .where('marketing_campaigns.id', '=', id)
    .executeTakeFirst()
  return row ? { subject: row.subject, content: row.content, audience: presentAudience(row) } : null
}

/** Returns each address once, with the first person who has the address. */
function recipientsIn(people: readonly AudiencePerson[]): Recipient[] {
  const found = new Map<string, Recipient>()
  for (const person of people)
    for (const address of addressesIn(person.emails)) if (!found.has(address)) found.set(address, { address, person })
  return [...found.values()]
}

/** Returns the recipients whose address has no ledger row for this campaign and occurrence. */
async function notYet(ctx: Context, run: CampaignRun, recipients: readonly Recipient[]): Promise<Recipient[]> {
  const known = await addressesInLedger(
    ctx,
    run,
    recipients.map(({ address }) => address),
  )
  return recipients.filter(({ address }) => !known.has(address))
}

/** Returns the addresses that have a ledger row for this campaign and occurrence. */
export async function addressesInLedger(
  { db }: Context,
  run: CampaignRun,
  addresses: readonly string[],
): Promise<ReadonlySet<string>> {
  const known = new Set<string>()
  for (let from = 0; from < addresses.length; from += atOnce) {
    const rows = await db
      .selectFrom('campaign_sends')
      .select('address')
      .where('campaign_id', '=', run.campaign_id)
      .where('occurrence', '=', run.occurrence)
      .where('address', 'in', addresses.slice(from, from + atOnce))
      .execute()
    for (const { address } of rows) known.add(address)
  }
  return known
}

/**
 * Queues the e-mails to the given recipients in one transaction. Placeholders are filled in before
 * the transaction begins, because a transaction blocks other writers.
 */
async function queueSome(
  ctx: Context,
  run: CampaignRun,
  draft: CampaignDraft,
  some: readonly Recipient[],
): Promise<void> {
  const facts = await placeholdersOfPersons(ctx, [...new Set(some.map(({ person }) => person.id))])
  const mails: (Recipient & { filled: ReturnType<typeof fillCampaign> })[] = []
  for (const { address, person } of some) {
    await yieldIfDue()
    const of = facts.get(person.id)
    if (of) mails.push({ address, person, filled: fillCampaign(ctx, draft, of, unsubscribeUrl(ctx, address)) })
  }
  await longTransaction(ctx, async (ctx) => {
    const { db } = ctx
    const campaign = db.selectFrom('marketing_campaigns').select('id').where('id', '=', run.campaign_id)
    if (!(await campaign.executeTakeFirst())) return
    const wanted = await notYet(ctx, run, mails)
    const addresses = new Set(wanted.map(({ address }) => address))
    const excluded = await findExclusions(ctx, [...addresses])
    const there = await peopleThere(ctx, wanted)
    for (const { address, person, filled } of mails) {
      await yieldIfDue()
      if (!addresses.has(address) || !there.has(person.id)) continue
      const exclusion = excluded.get(address)
      if (exclusion) await leaveOut(ctx, run, { address, person }, 'suppressed', exclusionNotes[exclusion])
      else if (typeof filled === 'string') await leaveOut(ctx, run, { address, person }, 'failed', filled)
      else await queueOne(ctx, run, { address, person }, filled)
    }
    await scheduleSending(ctx)
  })
}

/** Returns the ids of the recipients' persons that still exist. */
async function peopleThere({ db }: Context, recipients: readonly Recipient[]): Promise<ReadonlySet<number>> {
  const ids = [...new Set(recipients.map(({ person }) => person.id))]
  const rows = ids.length === 0 ? [] : await db.selectFrom('persons').select('id').where('id', 'in', ids).execute()
  return new Set(rows.map(({ id }) => id))
}

const rowOf = (ctx: Context, run: CampaignRun, { address, person }: Recipient) => ({
  ...run,
  address,
  person_id: person.id,
  message_id: `${v7({ msecs: ctx.time.getTime() })}@${ctx.services.config.mailDomain}`,
  created_at: now(ctx),
  updated_at: now(ctx),
})

const leaveOut = (
  ctx: Context,
  run: CampaignRun,
  to: Recipient,
  state: 'suppressed' | 'failed',
  error: string | null,
): Promise<unknown> =>
  ctx.db
    .insertInto('campaign_sends')
    .values({ ...rowOf(ctx, run, to), state, error })
    .execute()

/**
 * Queues one e-mail. When a listener vetoes the e-mail, it is not stored, and the run continues
 * with the next recipient.
 */
async function queueOne(
  ctx: Context,
  run: CampaignRun,
  to: Recipient,
  { subject, content }: FilledCampaign,
): Promise<void> {
  const about = {
    entity: 'sends',
    input: { ...run, address: to.address, person_id: to.person.id },
    related: { type: 'campaigns', id: run.campaign_id },
  }
  try {
    await write(ctx, 'marketing.send.create', about, async (ctx) => {
      const row = await ctx.db
        .insertInto('campaign_sends')
        .values({ ...rowOf(ctx, run, to), subject, content, run_at: now(ctx) })
        .returningAll()
        .executeTakeFirstOrThrow()
      const { name, emails } = to.person
      const joined = { person_name: name, person_emails: emails, user_name: null, user_email: null, user_image: null }
      return { id: row.id, entity: presentSend(ctx, { ...row, ...joined }) }
    })
  } catch (cause) {
    if (!isVeto(cause)) throw cause
  }
}
