// Defines the e-mails resource: written and received e-mails, in folders and threads,
// linked to a person and a lead. The rules are in content.ts, folders.ts, threads.ts and
// visibility.ts.
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import type { Schema } from '../../contract/types.ts'
import { author, type Context } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import {
  flagConditionField,
  flagField,
  indexedField,
  likePattern,
  linkedField,
  type SearchField,
  timeField,
  valueField,
} from '../../kernel/query/filter.ts'
import { defineResource, type Writing } from '../../kernel/resource/define-resource.ts'
import { checkReference, expandReferences } from '../../kernel/resource/references.ts'
import { fold, oneLine } from '../../kernel/values/format.ts'
import { textKey } from '../../kernel/values/names.ts'
import { leads } from '../leads/resource.ts'
import { personRef } from '../persons/contacts.ts'
import { persons } from '../persons/resource.ts'
import { checkTagIds, readTags, setTags, tagsIn } from '../tags/tag-links.ts'
import { userRef } from '../users/owner.ts'
import { pictureUrl } from '../users/picture.ts'
import { loadAttachments, saveAttachments } from './attachments.ts'
import { checkComplete, contentColumns, type EmailBody, isEditable, type StoredEmail } from './content.ts'
import { checkFolders, folderOfStatus, foldersAfterMove, foldersOf, loadFolders, storeFolders } from './folders.ts'
import { checkNotSending, moveSending, queueIfDue, restoreSending } from './queue.ts'
import { searchDocument } from './search-document.ts'
import { ownerOf, senderOf } from './sender.ts'
import { answerRecipients, inheritFrom, joinThread, newMessageId, referencesOf } from './threads.ts'
import { emailsInSight, visibleEmail, wasInOpenFolder } from './visibility.ts'

type Email = Schema<'Email'>

interface Current extends StoredEmail {
  parent_id: number | null
  person_id: number | null
  lead_id: number | null
}

async function toEmailRow(sent: EmailBody, writing: Writing<Current>) {
  const { ctx, current, errors } = writing
  if (!current) await checkReference(writing, 'parent_id', sent.parent_id, emails)
  else if (sent.parent_id !== undefined && sent.parent_id !== current.parent_id)
    errors.invalid('parent_id', 'The answered e-mail cannot be changed.')
  // An answer to an e-mail out of sight gets no recipients, which would show that it exists.
  const body = current || errors.any ? sent : await withRecipients(ctx, sent)
  if (body.person_id !== current?.person_id) await checkReference(writing, 'person_id', body.person_id, persons)
  if (body.lead_id !== current?.lead_id) await checkReference(writing, 'lead_id', body.lead_id, leads)
  await checkTagIds(ctx, errors, body.tag_ids)
  const status = body.is_draft === true ? 'draft' : 'queued'
  if (body.folders) {
    const filed = current ? await foldersOf(ctx, current.id) : { folders: [folderOfStatus(status)], kept: [] }
    checkFolders(errors, filed, body.folders)
  }
  const content = await contentColumns(body, writing)
  const columns = {
    ...content,
    is_read: body.is_read === undefined ? undefined : Number(body.is_read),
    person_id: body.person_id,
    lead_id: body.lead_id,
    send_at: body.send_at,
    parent_id: current ? undefined : (body.parent_id ?? null),
  }
  if (current && body.send_at !== undefined && body.send_at !== current.send_at && !isUnsent(current))
    throw new Problem('state_conflict', `The e-mail is ${current.status}: its send_at cannot change.`)
  if (current) return columns
  if (status === 'queued') checkComplete(errors, { ...body, html: content.html ?? null })
  return { ...columns, ...(await newColumns(body, ctx)), status } as const
}

const isUnsent = (mail: StoredEmail): boolean => isEditable(mail) || mail.status === 'queued'

/** Adds the recipients of a reply that names none. */
async function withRecipients(ctx: Context, body: EmailBody): Promise<EmailBody> {
  if (body.to !== undefined || typeof body.parent_id !== 'number') return body
  return { ...body, to: await answerRecipients(ctx, body.parent_id) }
}

/**
 * Returns the columns that only a new e-mail sets. A reply inherits subject, person and lead from
 * the e-mail that it replies to.
 */
async function newColumns(body: EmailBody, ctx: Context) {
  const parent = typeof body.parent_id === 'number' ? await inheritFrom(ctx, body.parent_id) : null
  const subject = oneLine(body.subject ?? parent?.subject ?? null)
  const messageId = newMessageId(ctx)
  const person_id = body.person_id === undefined ? (parent?.person_id ?? null) : body.person_id
  const lead_id = body.lead_id === undefined ? (parent?.lead_id ?? null) : body.lead_id
  const user_id = author(ctx)?.id ?? null
  // A generated e-mail without a person is for colleagues.
  const owner = user_id ?? (person_id === null ? null : await ownerOf(ctx, { lead_id, person_id }))
  const sender = await senderOf(ctx, owner)
  return {
    subject,
    subject_key: subject === null ? null : textKey(subject),
    from: JSON.stringify([sender.address]),
    from_name: sender.name,
    source: 'web' as const,
    sender_type: 'user' as const,
    is_read: Number(body.is_read ?? true),
    message_id: messageId,
    message_id_key: fold(messageId),
    person_id,
    lead_id,
    user_id,
  }
}

const addressSearch = (column: string): SearchField => ({
  where: (word, dialect) =>
    sql<SqlBool>`exists (select 1 from ${dialect.jsonTexts(column, 'address')} where ${dialect.searchFold('address.value')} like ${likePattern(word)} escape '\\')`,
})

/** A bounced e-mail keeps `sent` in the column `status`. */
function hasStatus(values: readonly (string | number)[]): RawBuilder<SqlBool> {
  const stored = values.filter((value) => value !== 'bounced')
  const bounced = sql`(emails.status = 'sent' and emails.bounced_at is not null)`
  const others = sql`(emails.status in (${sql.join(stored)}) and emails.bounced_at is null)`
  const tests = [...(stored.length > 0 ? [others] : []), ...(stored.length < values.length ? [bounced] : [])]
  return sql<SqlBool>`(${sql.join(tests, sql` or `)})`
}

const attached = sql`(select 1 from email_attachments as file where file.email_id = emails.id)`

export const emails = defineResource({
  noun: 'e-mail',
  table: 'emails',
  externalIds: { table: 'email_external_ids', column: 'email_id' },
  maxLoggedTextLength: 64 * 1024,
  operations: {
    list: 'listEmails',
    get: 'getEmail',
    create: 'createEmail',
    update: 'updateEmail',
    delete: 'deleteEmail',
  },
  rows: (ctx, db) =>
    db
      .selectFrom('emails')
      .leftJoin('persons', 'persons.id', 'emails.person_id')
      .leftJoin('leads', 'leads.id', 'emails.lead_id')
      .leftJoin('users', 'users.id', 'emails.user_id')
      .leftJoin('emails as parent', 'parent.id', 'emails.parent_id')
      .selectAll('emails')
      .select(tagsIn(ctx, db, 'emails'))
      .select(['persons.name as person_name', 'persons.emails as person_emails', 'leads.title as lead_title'])
      .select(['users.name as user_name', 'users.email as user_email', 'users.image_file_id as user_image'])
      .select(['parent.subject as parent_subject', 'parent.from as parent_from'])
      .where(visibleEmail(ctx)),
  idsInSight: emailsInSight,
  sort: {
    id: 'emails.id',
    subject: 'emails.subject_key',
    created_at: 'emails.created_at',
    updated_at: 'emails.updated_at',
    sent_at: 'emails.sent_at',
  },
  filter: {
    folder: linkedField('email_folders', 'emails.id', 'email_id', 'folder'),
    status: indexedField(hasStatus),
    is_read: flagField('emails.is_read'),
    source: valueField('emails.source'),
    sender_type: valueField('emails.sender_type'),
    person_id: valueField('emails.person_id'),
    lead_id: valueField('emails.lead_id'),
    parent_id: valueField('emails.parent_id'),
    thread_id: valueField('emails.thread_id'),
    message_id: indexedField(
      (values) => sql<SqlBool>`emails.message_id_key in (${sql.join(values.map((each) => fold(String(each))))})`,
    ),
    user_id: valueField('emails.user_id'),
    has_attachments: flagConditionField((wanted) =>
      wanted ? sql<SqlBool>`exists ${attached}` : sql<SqlBool>`not exists ${attached}`,
    ),
    // An e-mail without a parent counts as the first of its thread. The deletion of an e-mail
    // clears the `parent_id` of its replies, so they count as first e-mails too.
    is_root: flagConditionField((wanted) =>
      wanted ? sql<SqlBool>`emails.parent_id is null` : sql<SqlBool>`emails.parent_id is not null`,
    ),
    tag_id: linkedField('email_tags', 'emails.id', 'email_id', 'tag_id'),
    sent_at: timeField('emails.sent_at'),
  },
  related: {
    person: { entity: 'persons', column: 'emails.person_id' },
    lead: { entity: 'leads', column: 'emails.lead_id' },
  },
  searchDocument,
  search: [
    { indexed: 'emails' },
    { text: 'emails.subject' },
    { text: 'emails.from_name' },
    { text: 'emails.text' },
    ...['emails.from', 'emails.to', 'emails.cc', 'emails.bcc'].map(addressSearch),
  ],
  governs: ['is_draft'],
  withoutColumn: {
    folders: 'links',
    attachment_ids: 'rows',
    attachments: 'rows',
    tag_ids: 'links',
    is_draft: 'other columns',
  },
  toRow: async (body: EmailBody, writing) => ({
    columns: await toEmailRow(body, writing),
    save: async (ctx, id) => {
      await joinThread(ctx, id)
      const before = await foldersOf(ctx, id)
      await saveFolders(ctx, id, body.folders)
      await saveAttachments(ctx, id, body)
      await queueIfDue(ctx, id, before)
      if (body.send_at !== undefined) await moveSending(ctx, id)
    },
  }),
  toReply: (row, ctx): Email => ({
    id: row.id,
    subject: row.subject,
    html: row.html,
    text: row.text,
    to: JSON.parse(row.to) as string[],
    cc: JSON.parse(row.cc) as string[],
    // Only users see BCC recipients, because webhooks and workflows forward the e-mail to others.
    bcc: ctx.user ? (JSON.parse(row.bcc) as string[]) : [],
    from: JSON.parse(row.from) as string[],
    sender: JSON.parse(row.sender) as string[],
    reply_addresses: JSON.parse(row.reply_addresses) as string[],
    from_name: row.from_name,
    source: row.source as Email['source'],
    sender_type: row.sender_type as Email['sender_type'],
    status: row.bounced_at === null ? (row.status as Email['status']) : 'bounced',
    error: row.error,
    attempts: row.attempts,
    sent_at: row.sent_at,
    send_at: row.send_at,
    folders: [],
    is_read: row.is_read === 1,
    is_automatic: row.is_automatic === 1,
    message_id: row.message_id,
    references: [],
    parent_id: row.parent_id,
    parent:
      row.parent_id === null
        ? null
        : { id: row.parent_id, subject: row.parent_subject, from: JSON.parse(row.parent_from ?? '[]') as string[] },
    thread_id: row.thread_id ?? row.id,
    person_id: row.person_id,
    person: row.person_id === null ? null : personRef(row.person_id, row.person_name ?? '', row.person_emails ?? '[]'),
    lead_id: row.lead_id,
    lead: row.lead_id === null ? null : { id: row.lead_id, title: row.lead_title ?? '' },
    user_id: row.user_id,
    user: userRef(row.user_id, row.user_name, row.user_email, pictureUrl(ctx, row.user_image)),
    attachments: [],
    tags: readTags(row.tags),
    external_ids: {},
    created_at: row.created_at,
    updated_at: row.updated_at,
    version: row.version,
  }),
  loadRelated: loadParts,
  beforeDelete: checkNotSending,
  onRestore: (ctx, { row }) => restoreSending(ctx, { id: Number(row.id), status: String(row.status) }),
  saveLinks: (ctx, id, body, isNew) => setTags(ctx, 'emails', id, body.tag_ids, isNew),
  wasInSight: wasInOpenFolder,
})

/** Stores the folders from the body. A new e-mail without folders gets the folder of its status. */
async function saveFolders(ctx: Context, id: number, wanted: EmailBody['folders']): Promise<void> {
  let filed = await foldersOf(ctx, id)
  const isNew = filed.folders.length === 0
  if (isNew) {
    const { status } = await ctx.db.selectFrom('emails').select('status').where('id', '=', id).executeTakeFirstOrThrow()
    filed = { folders: [folderOfStatus(status)], kept: [] }
  }
  if (wanted) await storeFolders(ctx, id, foldersAfterMove(filed, wanted))
  else if (isNew) await storeFolders(ctx, id, filed)
}

async function loadParts(ctx: Context, replies: Email[], include: readonly string[]): Promise<void> {
  const chains = await referencesOf(
    ctx,
    replies.map(({ id }) => id),
  )
  for (const reply of replies) reply.references = chains.get(reply.id) ?? []
  await loadFolders(ctx, replies)
  await loadAttachments(ctx, replies)
  await expandReferences(ctx, replies, include, { person: () => persons, lead: () => leads, parent: () => emails })
  if (include.includes('children')) await loadChildren(ctx, replies)
}

/** Adds the visible replies to each e-mail of a page, oldest first. */
async function loadChildren(ctx: Context, replies: Email[]): Promise<void> {
  const rows = await ctx.db
    .selectFrom('emails')
    .select(['id', 'parent_id'])
    .where(
      'parent_id',
      'in',
      replies.map(({ id }) => id),
    )
    .orderBy('id')
    .execute()
  const ids = rows.map(({ id }) => id)
  const children = (await emails.getMany(ctx, ids)) as Map<number, Schema<'IncludedEmail'>>
  for (const reply of replies)
    reply.children = rows.flatMap((row) => (row.parent_id === reply.id ? (children.get(row.id) ?? []) : []))
}
