// Queues the e-mails of a campaign run. The primary address of each person of the audience gets
// one row in the ledger, the table campaign_sends. An address or person that has a row is skipped,
// so an interrupted run can continue and a repeated run adds only new persons.
import { v7 } from 'uuid'
import { defineJob, releaseDedupeKey } from '../../jobs/queue.ts'
import { type Context, now } from '../../kernel/context.ts'
import { visible } from '../../kernel/query/visibility.ts'
import { isVeto, transaction, write } from '../../kernel/write/write.ts'
import { primaryAddressIn } from './addresses.ts'
import { type Audience, type AudiencePerson, audienceProblem, nextPersons, presentAudience } from './audience.ts'
import { exclusionNotes, findExclusions } from './exclusions.ts'
import { scheduleSending } from './sending.ts'
import { presentSend } from './sends.ts'

export interface CampaignRun {
  campaign_id: number
  /** The date of the campaign's event (YYYY-MM-DD); `once` for a campaign without a date. */
  occurrence: string
}

interface Recipient {
  address: string
  person: AudiencePerson
}

/**
 * The maximum number of persons per query. A query with `q` finds all its persons again, so it
 * reads far more than one transaction queues.
 */
const readAtOnce = 1_000
/** The maximum number of e-mails per transaction. */
const atOnce = 100

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
    const audience = await audienceOf(ctx, run.campaign_id)
    if (!audience) return true
    const problem = await audienceProblem(ctx, audience)
    if (problem !== null) {
      ctx.services.log.warn({ campaign: run.campaign_id }, `A campaign run ended. ${problem}`)
      return true
    }
    const people = await nextPersons(ctx, audience, { after, limit: readAtOnce })
    const last = people.at(-1)
    if (!last) return true
    const recipients = await notYet(ctx, run, recipientsIn(people))
    for (let from = 0; from < recipients.length; from += atOnce) {
      if (signal?.aborted) return false
      await queueSome(ctx, run, recipients.slice(from, from + atOnce))
    }
    if (signal?.aborted) return false
    after = last.id
  }
}

/**
 * Returns the audience of the campaign. Returns null when the campaign or its template has been
 * deleted.
 */
async function audienceOf({ db }: Context, id: number): Promise<Audience | null> {
  const row = await db
    .selectFrom('marketing_campaigns')
    .innerJoin('email_templates', 'email_templates.id', 'marketing_campaigns.email_template_id')
    .select(['audience_type', 'audience_filter', 'audience_tag_id', 'audience_import_id'])
    .where('marketing_campaigns.id', '=', id)
    .executeTakeFirst()
  return row ? presentAudience(row) : null
}

/** Returns the primary address of each person once, with the first person who has it. */
function recipientsIn(people: readonly AudiencePerson[]): Recipient[] {
  const found = new Map<string, Recipient>()
  for (const person of people) {
    const address = primaryAddressIn(person.emails)
    if (address !== null && !found.has(address)) found.set(address, { address, person })
  }
  return [...found.values()]
}

/** Returns the recipients who have no e-mail of this campaign and occurrence. */
async function notYet(ctx: Context, run: CampaignRun, recipients: readonly Recipient[]): Promise<Recipient[]> {
  const known = await addressesInLedger(
    ctx,
    run,
    recipients.map(({ address, person }) => ({ address, personId: person.id })),
  )
  return recipients.filter(({ address }) => !known.has(address))
}

/**
 * Returns the addresses that have a ledger row for this campaign and occurrence, or whose person
 * has one with an earlier address, among the rows of persons that the caller sees. An address that
 * was left out does not count, because its person may have consented since.
 */
export async function addressesInLedger(
  ctx: Context,
  run: CampaignRun,
  recipients: readonly { address: string; personId: number }[],
): Promise<ReadonlySet<string>> {
  if (recipients.length === 0) return new Set()
  const { db } = ctx
  const isLimited = (ctx.user?.visibleOwners ?? null) !== null
  const inSight = db.selectFrom('persons').select('id').where(visible(ctx, 'persons.user_id'))
  const ofRun = () =>
    db
      .selectFrom('campaign_sends')
      .where('campaign_id', '=', run.campaign_id)
      .where('occurrence', '=', run.occurrence)
      .$if(isLimited, (rows) => rows.where('person_id', 'in', inSight))
  const addresses = recipients.map(({ address }) => address)
  const withRow = ofRun().select('address').where('address', 'in', addresses).where('state', '!=', 'suppressed')
  const known = new Set((await withRow.execute()).map(({ address }) => address))
  const ids = recipients.map(({ personId }) => personId)
  const reached = ofRun()
    .select('person_id')
    .where('person_id', 'in', ids)
    // A queued e-mail to an earlier address is not sent (sending.ts).
    .where('state', 'in', ['sending', 'sent', 'uncertain'])
  const persons = new Set((await reached.execute()).map(({ person_id }) => person_id))
  for (const { address, personId } of recipients) if (persons.has(personId)) known.add(address)
  return known
}

/** Queues the e-mails to the given recipients in one transaction. */
async function queueSome(ctx: Context, run: CampaignRun, some: readonly Recipient[]): Promise<void> {
  await transaction(
    ctx,
    async (ctx) => {
      const { db } = ctx
      const campaign = db.selectFrom('marketing_campaigns').select('id').where('id', '=', run.campaign_id)
      if (!(await campaign.executeTakeFirst())) return
      const wanted = await notYet(ctx, run, some)
      const addresses = new Set(wanted.map(({ address }) => address))
      const excluded = await findExclusions(ctx, [...addresses])
      const there = await peopleThere(ctx, wanted)
      const readmitted = [...addresses].filter((address) => !excluded.has(address))
      if (readmitted.length > 0) await forgetLeftOut(ctx, run, readmitted)
      for (const { address, person } of some) {
        if (!addresses.has(address) || !there.has(person.id)) continue
        const exclusion = excluded.get(address)
        if (exclusion) await leaveOut(ctx, run, { address, person }, exclusionNotes[exclusion])
        else await queueOne(ctx, run, { address, person })
      }
      await scheduleSending(ctx)
    },
    { isLong: true },
  )
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

const leaveOut = (ctx: Context, run: CampaignRun, to: Recipient, error: string | null): Promise<unknown> =>
  ctx.db
    .insertInto('campaign_sends')
    .values({ ...rowOf(ctx, run, to), state: 'suppressed', error })
    // An earlier run may have left out the address.
    .onConflict((conflict) => conflict.columns(['campaign_id', 'occurrence', 'address']).doNothing())
    .execute()

/** Deletes the rows of addresses that an earlier run left out, and this one does not. */
const forgetLeftOut = (ctx: Context, run: CampaignRun, addresses: readonly string[]): Promise<unknown> =>
  ctx.db
    .deleteFrom('campaign_sends')
    .where('campaign_id', '=', run.campaign_id)
    .where('occurrence', '=', run.occurrence)
    .where('address', 'in', addresses)
    .where('state', '=', 'suppressed')
    .execute()

/**
 * Queues one e-mail. When a listener vetoes the e-mail, it is not stored, and the run continues
 * with the next recipient.
 */
async function queueOne(ctx: Context, run: CampaignRun, to: Recipient): Promise<void> {
  const about = {
    entity: 'sends',
    input: { ...run, address: to.address, person_id: to.person.id },
    related: { type: 'campaigns', id: run.campaign_id },
  }
  try {
    await write(ctx, 'marketing.send.create', about, async (ctx) => {
      const row = await ctx.db
        .insertInto('campaign_sends')
        .values({ ...rowOf(ctx, run, to), run_at: now(ctx) })
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
