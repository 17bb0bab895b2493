// Handlers for the e-mail operations other than CRUD: trash, sending, mass operations, threads, and
// the e-mail lists of leads and persons.
import type { Schema } from '../../contract/types.ts'
import { assertCanCall, type Context } from '../../kernel/context.ts'
import { invalid, notFound, ValidationErrors } from '../../kernel/errors.ts'
import type { Handler, Handlers } from '../../kernel/handler.ts'
import { inMass } from '../../kernel/resource/mass.ts'
import { checkReference } from '../../kernel/resource/references.ts'
import { inSteps } from '../../kernel/write/idempotency.ts'
import { transaction } from '../../kernel/write/write.ts'
import { downloadBytes } from '../files/handlers.ts'
import { leads } from '../leads/resource.ts'
import { persons } from '../persons/resource.ts'
import { createTagHandlers } from '../tags/tag-handlers.ts'
import { getAttachment } from './attachments.ts'
import { queueEmail, restoreFromTrash } from './change-email.ts'
import { foldersOf } from './folders.ts'
import { emails } from './resource.ts'

const noun = { one: 'e-mail', many: 'e-mails' }
const tagged = createTagHandlers('emails', emails)

/**
 * Deletes an e-mail that is in the trash, and moves any other e-mail to the trash.
 * `type` overrides this choice. Returns the message of the reply.
 */
const discard = (ctx: Context, id: number, type: 'trash' | 'delete' | undefined): Promise<string> =>
  transaction(ctx, async (ctx) => {
    await emails.assertVisible(ctx, id)
    const { folders } = await foldersOf(ctx, id)
    const isTrashed = folders.includes('trash')
    if (type === 'delete' || (type === undefined && isTrashed)) {
      await emails.remove(ctx, id)
      return 'E-mail deleted.'
    }
    await emails.update(ctx, id, { folders: isTrashed ? [...folders] : ['trash'] })
    return 'E-mail moved to the trash.'
  })

const massUpdateEmails: Handler<'massUpdateEmails'> = inSteps((ctx, { body }) => {
  const { ids, atomic, folders, is_read, value } = body
  if ([folders, is_read, value].filter((each) => each !== undefined).length !== 1)
    throw invalid({ folders: ['Send one of folders, is_read and value.'] })
  const isRead = is_read ?? value
  const changes = { ...(folders && { folders }), ...(isRead !== undefined && { is_read: isRead }) }
  return inMass(ctx, { noun, verb: 'updated', ids, atomic, each: (ctx, id) => emails.update(ctx, id, changes) })
})

const massDeleteEmails: Handler<'massDeleteEmails'> = inSteps((ctx, { body: { ids, type } }) =>
  inMass(ctx, {
    noun,
    verb: type === 'delete' ? 'deleted' : 'discarded',
    ids,
    each: (ctx, id) => discard(ctx, id, type),
  }),
)

/** Lists the thread of an e-mail, oldest first, because a thread is read from its beginning. */
const listEmailThread: Handler<'listEmailThread'> = async (ctx, { params, query }) => {
  const { thread_id: thread } = await emails.get(ctx, params.id)
  return emails.list(ctx, { ...query, sort: ['created_at', 'id'] }, (rows) =>
    rows.where('emails.thread_id', '=', thread),
  )
}

const downloadEmailAttachment: Handler<'downloadEmailAttachment'> = async (ctx, { params }) => {
  await emails.assertVisible(ctx, params.id)
  const { file_id: id, name, content_type, sha256 } = await getAttachment(ctx, params.id, params.attachment_id)
  return downloadBytes(ctx, { id, name, content_type, sha256 })
}

const linkToLead = (ctx: Context, id: number, lead_id: number | null): Promise<Schema<'Email'>> =>
  // The request's If-Match applies to the lead, not to the e-mail.
  emails.update({ ...ctx, ifMatch: null }, id, { lead_id })

const attachLeadEmail: Handler<'attachLeadEmail'> = (ctx, { params, body: { email_id: id } }) =>
  transaction(ctx, async (ctx) => {
    await leads.assertVisible(ctx, params.id)
    const errors = new ValidationErrors()
    await checkReference({ ctx, errors }, 'email_id', id, emails)
    errors.throwIfAny()
    // The reply contains the e-mail, so the caller needs the e-mail permissions even if nothing
    // changes.
    assertCanCall(ctx, 'updateEmail')
    assertCanCall(ctx, 'getEmail')
    const mail = await emails.get(ctx, id)
    const data = mail.lead_id === params.id ? mail : await linkToLead(ctx, id, params.id)
    return { data, message: 'E-mail linked to the lead.' }
  })

const detachLeadEmail: Handler<'detachLeadEmail'> = (ctx, { params }) =>
  transaction(ctx, async (ctx) => {
    await leads.assertVisible(ctx, params.id)
    const mail = (await emails.getMany(ctx, [params.email_id])).get(params.email_id)
    if (mail?.lead_id !== params.id) throw notFound('linked e-mail', params.email_id)
    assertCanCall(ctx, 'updateEmail')
    await linkToLead(ctx, mail.id, null)
    return { message: 'E-mail unlinked from the lead.' }
  })

export const handlers = {
  deleteEmail: async (ctx, { params, query }) => ({ message: await discard(ctx, params.id, query.type) }),
  massUpdateEmails,
  massDeleteEmails,
  sendEmail: async (ctx, { params }) => ({ data: await queueEmail(ctx, params.id), message: 'E-mail queued.' }),
  untrashEmail: async (ctx, { params }) => ({
    data: await restoreFromTrash(ctx, params.id),
    message: 'E-mail taken out of the trash.',
  }),
  listEmailThread,
  downloadEmailAttachment,
  listEmailTags: tagged.list,
  attachEmailTag: tagged.attach,
  detachEmailTag: tagged.detach,
} satisfies Partial<Handlers>

/**
 * Handlers for the e-mails of a lead or person. The lead or person must be visible to the caller.
 */
export const subLists = {
  listLeadEmails: async (ctx, { params, query }) => {
    await leads.assertVisible(ctx, params.id)
    return emails.list(ctx, query, (rows) => rows.where('emails.lead_id', '=', params.id))
  },
  attachLeadEmail,
  detachLeadEmail,
  listPersonEmails: async (ctx, { params, query }) => {
    await persons.assertVisible(ctx, params.id)
    return emails.list(ctx, query, (rows) => rows.where('emails.person_id', '=', params.id))
  },
} satisfies Partial<Handlers>
