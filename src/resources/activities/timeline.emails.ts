// E-mails in the timelines of leads and persons (DOMAIN 13.4): those linked to the record, and the rest of their threads.
import { type RawBuilder, sql } from 'kysely'
import { operations } from '../../contract/operations.gen.ts'
import type { Schema } from '../../contract/types.ts'
import { type Context, may } from '../../kernel/context.ts'
import { visibleEmail } from '../emails/visibility.ts'
import { userRef } from '../users/owner.ts'
import { pictureUrl } from '../users/picture.ts'
import type { Kind } from './links.ts'
import { unsaid } from './timeline.changes.ts'

type Entry = Schema<'TimelineEntry'>

/** The keys of the e-mails of a record that the caller may read; nothing for records that have none. */
export function mailKeys<Key>(ctx: Context, kind: Kind, id: number): RawBuilder<Key>[] {
  if ((kind !== 'leads' && kind !== 'persons') || !may(ctx, operations.getEmail)) return []
  const column = sql.ref(kind === 'leads' ? 'linked.lead_id' : 'linked.person_id')
  return [
    sql<Key>`select 'email' as source, emails.id, emails.created_at, 'email' as type, 1 as is_done, null as event_id, null as key from emails where emails.thread_id in (select linked.thread_id from emails as linked where ${column} = ${id}) and ${visibleEmail(ctx)}`,
  ]
}

/** By id, with three queries. */
export async function mailEntries(ctx: Context, ids: readonly number[]): Promise<Map<number, Entry>> {
  if (ids.length === 0) return new Map()
  const rows = await ctx.db
    .selectFrom('emails')
    .leftJoin('users', 'users.id', 'emails.user_id')
    .selectAll('emails')
    .select(['users.name as user_name', 'users.email as user_email', 'users.image_file_id as user_image'])
    .where('emails.id', 'in', ids)
    .execute()
  const folders = await ctx.db
    .selectFrom('email_folders')
    .select(['email_id', 'folder'])
    .where('email_id', 'in', ids)
    .orderBy('folder')
    .execute()
  const files = await attachmentsOf(ctx, ids)
  const entryOf = (row: (typeof rows)[number]): Entry => ({
    ...unsaid(),
    source: 'email',
    id: row.id,
    type: 'email',
    title: row.subject,
    comment: row.reply,
    additional: {
      folders: folders.filter(({ email_id }) => email_id === row.id).map(({ folder }) => folder),
      from: JSON.parse(row.from) as string[],
      to: JSON.parse(row.reply_to) as string[],
      cc: JSON.parse(row.cc) as string[],
      bcc: JSON.parse(row.bcc) as string[],
    },
    is_done: true,
    user_id: row.user_id,
    user: userRef(row.user_id, row.user_name, row.user_email, pictureUrl(ctx, row.user_image)),
    files: files.get(row.id) ?? [],
    created_at: row.created_at,
    updated_at: row.updated_at,
    version: row.version,
  })
  return new Map(rows.map((row) => [row.id, entryOf(row)]))
}

async function attachmentsOf(ctx: Context, ids: readonly number[]): Promise<Map<number, Entry['files']>> {
  const rows = await ctx.db
    .selectFrom('email_attachments')
    .innerJoin('files', 'files.id', 'email_attachments.file_id')
    .selectAll('email_attachments')
    .select(['files.size', 'files.content_type'])
    .where('email_attachments.email_id', 'in', ids)
    .orderBy('email_attachments.id')
    .execute()
  const found = new Map<number, Entry['files']>()
  for (const row of rows) {
    const path = operations.downloadEmailAttachment.path
      .replace('{id}', String(row.email_id))
      .replace('{attachment_id}', String(row.id))
    const { id, name, size, content_type, created_at, updated_at } = row
    const file = { id, name, path, url: ctx.base + path, size, content_type, created_at, updated_at }
    found.set(row.email_id, [...(found.get(row.email_id) ?? []), file])
  }
  return found
}
