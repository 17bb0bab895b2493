// Defines the visibility of e-mails. The caller must be allowed to open a folder
// of the e-mail, and must see its owner, lead or person. A received e-mail without owner, lead and
// person is visible to all callers who may open the inbox.

import { type RawBuilder, type SqlBool, sql } from 'kysely'
import { type Context, hasPermission } from '../../kernel/context.ts'
import type { SqlCaller } from '../../kernel/query/caller-query.ts'
import { always, never } from '../../kernel/query/event-visibility.ts'
import { allInSight, idsInSight, visible } from '../../kernel/query/visibility.ts'

/** The permission that a caller needs to open each folder. */
export const folderPermissions = {
  inbox: 'mail.inbox',
  important: 'mail.inbox',
  starred: 'mail.inbox',
  draft: 'mail.draft',
  outbox: 'mail.outbox',
  sent: 'mail.sent',
  spam: 'mail.inbox',
  trash: 'mail.trash',
} as const

export type EmailFolder = keyof typeof folderPermissions
export const allFolders = Object.keys(folderPermissions) as EmailFolder[]

const openFolders = (ctx: SqlCaller): EmailFolder[] =>
  allFolders.filter((folder) => hasPermission(ctx, folderPermissions[folder]))
const canOpenAll = (ctx: SqlCaller): boolean =>
  allFolders.every((folder) => hasPermission(ctx, folderPermissions[folder]))

function inOpenFolder(ctx: SqlCaller): RawBuilder<SqlBool> {
  const open = openFolders(ctx)
  if (canOpenAll(ctx)) return always
  if (open.length === 0) return never
  return sql<SqlBool>`exists (select 1 from email_folders as place where place.email_id = emails.id and place.folder in (${sql.join(open)}))`
}

/**
 * Returns the SQL condition that a deleted e-mail was in a folder that the caller may open. The
 * condition reads the folders from the deletion event, which the query calls `known`.
 */
export function wasInOpenFolder(ctx: Context): RawBuilder<SqlBool> {
  const open = openFolders(ctx)
  if (canOpenAll(ctx)) return always
  if (open.length === 0) return never
  const place = ctx.services.store.dialect.jsonTexts('known.before', 'place', 'folders')
  return sql<SqlBool>`exists (select 1 from ${place} where place.value in (${sql.join(open)}))`
}

/** A received e-mail that belongs to no user, lead or person. */
const isUnfiled = sql<SqlBool>`(emails.source = 'email' and emails.user_id is null and emails.lead_id is null and emails.person_id is null)`

function isRecordVisible(ctx: SqlCaller): RawBuilder<SqlBool> {
  if (!ctx.user?.visibleOwners) return always
  const through = (table: string, column: string) =>
    sql`exists (select 1 from ${sql.table(table)} as target where target.id = ${sql.ref(column)} and ${visible(ctx, 'target.user_id', table)})`
  const ways = [
    visible(ctx, 'emails.user_id'),
    through('leads', 'emails.lead_id'),
    through('persons', 'emails.person_id'),
    ...(hasPermission(ctx, folderPermissions.inbox) ? [isUnfiled] : []),
  ]
  return sql<SqlBool>`(${sql.join(ways, sql` or `)})`
}

/**
 * Returns subqueries of the ids of the e-mails whose owner, lead or person makes them visible, one
 * for each way.
 */
export function emailsInSight(ctx: SqlCaller): RawBuilder<unknown>[] {
  const through = (table: string, column: string) =>
    sql`select emails.id from ${allInSight(ctx, table)} as target cross join emails where ${sql.ref(`emails.${column}`)} = target.id`
  return [
    ...idsInSight(ctx, 'emails'),
    through('leads', 'lead_id'),
    through('persons', 'person_id'),
    ...(hasPermission(ctx, folderPermissions.inbox) ? [sql`select emails.id from emails where ${isUnfiled}`] : []),
  ]
}

/** Returns the SQL visibility condition for queries of `emails`. */
export function visibleEmail(ctx: SqlCaller): RawBuilder<SqlBool> {
  const seen = sql<SqlBool>`(${isRecordVisible(ctx)} and ${inOpenFolder(ctx)})`
  // A caller who sees all e-mails needs no exception for `visibleRecord`.
  const isLimited = (ctx.user?.visibleOwners ?? null) !== null || !canOpenAll(ctx)
  return isLimited && ctx.visibleRecord?.table === 'emails'
    ? sql<SqlBool>`(${seen} or emails.id = ${ctx.visibleRecord.id})`
    : seen
}
