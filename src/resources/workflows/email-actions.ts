// Workflow actions that send an e-mail from a template. The transaction of the action
// queues the e-mail.
import type { Schema } from '../../contract/types.ts'
import { type Context, canCall } from '../../kernel/context.ts'
import type { Texts } from '../../texts/texts.ts'
import { placeholdersFrom } from '../email-templates/placeholder-values.ts'
import { fillIn, maxFilledLength } from '../email-templates/placeholders.ts'
import { emailTemplates } from '../email-templates/resource.ts'
import { emails } from '../emails/resource.ts'
import { leads } from '../leads/resource.ts'
import { textsOfPerson } from '../persons/language.ts'
import { persons } from '../persons/resource.ts'
import {
  type ActionEffect,
  type ActionSubject,
  actionRefused,
  personIdOf,
  workflowResources,
} from './action-subject.ts'
import type { Action } from './actions.ts'
import { hasUnseenParticipants, inviteKey, mailableParticipants, uploadInvitation } from './calendar-invitation.ts'

interface Recipient {
  addresses: string[]
  personId: number | null
}

/**
 * Returns the subject and text of the template, filled in for the record in the language of the
 * recipient. Throws a Problem when the
 * template is deleted or the result is too long.
 */
async function contentOf(ctx: Context, { entity, record }: ActionSubject, { value }: Action, texts: Texts) {
  const template = await templateOf(ctx, value)
  const facts = await placeholdersFrom(ctx, entity, record, texts)
  const subject = fillIn(template.subject, facts, 'text', maxFilledLength.subject)
  const content = fillIn(template.content, facts, 'html', maxFilledLength.content)
  if (!subject || !content)
    throw actionRefused(`The e-mail template ${template.name} is too long for a mail once it is filled in.`)
  return { subject: subject.filled, html: content.filled }
}

async function templateOf(ctx: Context, id: unknown): Promise<Schema<'EmailTemplate'>> {
  const template = (await emailTemplates.getMany(ctx, [Number(id)])).get(Number(id))
  if (!template) throw actionRefused(`The e-mail template ${Number(id)} has been deleted.`)
  return template
}

async function send(
  ctx: Context,
  about: ActionSubject,
  action: Action,
  recipients: readonly Recipient[],
): Promise<{ email_ids: number[] }> {
  const attachments = ctx.uploads?.files.has(inviteKey) ? [inviteKey] : []
  const leadId = await leadOf(ctx, about)
  const sent: number[] = []
  for (const { addresses, personId } of recipients) {
    const mail = {
      ...(await contentOf(ctx, about, action, await textsOfPerson(ctx, personId))),
      to: addresses,
      attachments,
      lead_id: leadId,
      person_id: await existing(ctx, personId),
    }
    sent.push((await emails.create(ctx, mail)).id)
  }
  return { email_ids: sent }
}

/**
 * Returns the id of the lead to which the e-mail is linked: the record itself if it is a lead, or
 * the only lead linked to the record. Returns null when the record has no lead, several leads, or a
 * lead that the caller may not see.
 */
async function leadOf(ctx: Context, { entity, id, record }: ActionSubject): Promise<number | null> {
  const linked =
    entity === 'leads'
      ? [id]
      : entity === 'activities'
        ? (record.lead_ids as number[])
        : entity === 'quotes'
          ? (record.leads as { id: number }[]).map((lead) => lead.id)
          : []
  const [only] = linked
  if (linked.length !== 1 || only === undefined || !canCall(ctx, leads.getOperation)) return null
  return (await leads.visibleIds(ctx, [only])).has(only) ? only : null
}

const existing = async (ctx: Context, personId: number | null): Promise<number | null> =>
  personId !== null && (await persons.visibleIds(ctx, [personId])).has(personId) ? personId : null

/**
 * Returns the person of the record with all e-mail addresses. If the run is about a deleted person,
 * these are the last known addresses.
 */
async function personOf(ctx: Context, about: ActionSubject): Promise<Recipient> {
  const personId = personIdOf(about)
  const person = about.entity === 'persons' ? about.record : (await persons.getMany(ctx, [personId])).get(personId)
  if (!person) throw actionRefused(`No person has id ${personId}.`)
  const points = (person.emails ?? []) as Schema<'ContactPoint'>[]
  if (points.length === 0) throw actionRefused('The person has no e-mail address.')
  return { addresses: points.map(({ value }) => value), personId }
}

/** Returns the active owner of the record. Throws a Problem when there is none. */
export async function activeOwnerOf({ db }: Context, { entity, record }: ActionSubject) {
  const { noun } = workflowResources[entity]
  if (typeof record.user_id !== 'number') throw actionRefused(`The ${noun} has no owner.`)
  const row = await db
    .selectFrom('users')
    .select(['id', 'email', 'is_active'])
    .where('id', '=', record.user_id)
    .executeTakeFirst()
  if (row?.is_active !== 1) throw actionRefused(`The owner of the ${noun} is not active.`)
  return row
}

const ownerOf = async (ctx: Context, about: ActionSubject): Promise<Recipient> => ({
  addresses: [(await activeOwnerOf(ctx, about)).email],
  personId: null,
})

/**
 * Returns the participants that get the e-mail; the list may be empty. Throws a Problem when the
 * user may not see a participant, because this person would get no e-mail.
 */
async function participantsOf(ctx: Context, { record }: ActionSubject): Promise<Recipient[]> {
  if (await hasUnseenParticipants(ctx, record))
    throw actionRefused('The user whose rights this workflow has does not see one of the participants.')
  return mailableParticipants(ctx, record)
}

/** Returns a description such as "Queue an e-mail from the template Welcome to the person." */
const sentence = async (ctx: Context, { value }: Action, to: string): Promise<string> =>
  `Queue an e-mail from the template ${(await templateOf(ctx, value)).name} to ${to}.`

/**
 * Returns the name of the person as the record shows it, even when the caller may not see the
 * person.
 */
const nameOf = ({ entity, record }: ActionSubject): string =>
  String((entity === 'persons' ? record : (record.person as { name: string } | null))?.name ?? 'the person')

export const emailActions = {
  send_email_to_person: {
    act: async (ctx, about, action) => send(ctx, about, action, [await personOf(ctx, about)]),
    async describe(ctx, about, action) {
      personIdOf(about)
      return sentence(ctx, action, nameOf(about))
    },
  },
  send_email_to_sales_owner: {
    act: async (ctx, about, action) => send(ctx, about, action, [await ownerOf(ctx, about)]),
    async describe(ctx, about, action) {
      await ownerOf(ctx, about)
      return sentence(ctx, action, `the owner, ${(about.record.user as { name: string } | null)?.name ?? ''}`)
    },
    uploads: uploadInvitation,
  },
  send_email_to_participants: {
    act: async (ctx, about, action) => send(ctx, about, action, await participantsOf(ctx, about)),
    async describe(ctx, about, action) {
      const { length } = await participantsOf(ctx, about)
      if (length === 0) return 'Send nothing: no participant has an e-mail address.'
      return sentence(ctx, action, length === 1 ? 'the participant' : `each of the ${length} participants`)
    },
    uploads: uploadInvitation,
  },
} satisfies Record<string, ActionEffect>
