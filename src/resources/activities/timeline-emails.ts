// Shows e-mails in the timelines of leads and persons: the e-mails that are linked to
// the record, and all other e-mails in the same threads.
import { type RawBuilder, sql } from 'kysely'
import type { Schema } from '../../contract/types.ts'
import { type Context, canCall } from '../../kernel/context.ts'
import { emails } from '../emails/resource.ts'
import { visibleEmail } from '../emails/visibility.ts'
import type { LinkedEntity } from './links.ts'
import { emptyActivityFields } from './timeline-changes.ts'

type Email = Schema<'Email'>
type Entry = Schema<'TimelineEntry'>

/**
 * Returns a list with one subquery, which selects the keys of the record's e-mails that the caller
 * may read. The list is empty when the entity has no e-mails or the caller may not read e-mails.
 */
export function emailKeys<Key>(ctx: Context, kind: LinkedEntity, id: number): RawBuilder<Key>[] {
  if ((kind !== 'leads' && kind !== 'persons') || !canCall(ctx, emails.getOperation)) return []
  const column = sql.ref(kind === 'leads' ? 'linked.lead_id' : 'linked.person_id')
  return [
    sql<Key>`select 'email' as source, emails.id, emails.created_at, 'email' as type, ${sql.raw(ctx.services.store.dialect.flagLiteral(true))} as is_done, cast(null as bigint) as event_id, cast(null as text) as key from emails where emails.thread_id in (select linked.thread_id from emails as linked where ${column} = ${id}) and ${visibleEmail(ctx)}`,
  ]
}

export async function emailEntries(ctx: Context, ids: readonly number[]): Promise<Map<number, Entry>> {
  const found = await emails.getMany(ctx, ids)
  return new Map([...found].map(([id, email]) => [id, entryOf(email)]))
}

const entryOf = (email: Email): Entry => ({
  ...emptyActivityFields(),
  source: 'email',
  id: email.id,
  type: 'email',
  title: email.subject,
  comment: email.html,
  additional: {
    folders: email.folders,
    from: email.from,
    to: email.to,
    cc: email.cc,
    bcc: email.bcc,
  },
  is_done: true,
  user_id: email.user_id,
  user: email.user,
  files: email.attachments.map(({ file_id: _, content_id: __, ...file }) => file),
  lead_ids: idsOf(email.lead),
  person_ids: idsOf(email.person),
  // `getMany` without `include` returns references, not full records.
  leads: listOf(email.lead),
  persons: listOf(email.person) as Entry['persons'],
  created_at: email.created_at,
  updated_at: email.updated_at,
  version: email.version,
})

const listOf = <One>(one: One | null): One[] => (one === null ? [] : [one])
const idsOf = (one: { id: number } | null): number[] => listOf(one).map(({ id }) => id)
