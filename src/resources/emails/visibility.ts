// Who sees a mail (DOMAIN 7.3, 7.4): whoever may open one of its folders and sees its owner, its lead or its person. What came
// in and belongs to nobody yet is for everybody who reads the inbox.
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import { type Context, hasPermission } from '../../kernel/context.ts'
import { always, never } from '../../kernel/query/event-visibility.ts'
import { visible } from '../../kernel/query/visibility.ts'

/** The permission that opens each folder. */
export const folderKeys = {
  inbox: 'mail.inbox',
  important: 'mail.inbox',
  starred: 'mail.inbox',
  draft: 'mail.draft',
  outbox: 'mail.outbox',
  sent: 'mail.sent',
  spam: 'mail.inbox',
  trash: 'mail.trash',
} as const

export type Folder = keyof typeof folderKeys
export const allFolders = Object.keys(folderKeys) as Folder[]

const openTo = (ctx: Context): Folder[] => allFolders.filter((folder) => hasPermission(ctx, folderKeys[folder]))
const opensEach = (ctx: Context): boolean => allFolders.every((folder) => hasPermission(ctx, folderKeys[folder]))

function inOpenFolder(ctx: Context): RawBuilder<SqlBool> {
  const open = openTo(ctx)
  if (opensEach(ctx)) return always
  if (open.length === 0) return never
  return sql<SqlBool>`exists (select 1 from email_folders as place where place.email_id = emails.id and place.folder in (${sql.join(open)}))`
}

/** Whether a deleted mail lay in a folder that the caller may open, by the event `known` that tells of its deletion. */
export function wasInOpenFolder(ctx: Context): RawBuilder<SqlBool> {
  const open = openTo(ctx)
  if (opensEach(ctx)) return always
  if (open.length === 0) return never
  const place = ctx.services.store.dialect.jsonTexts('known.before', 'place', 'folders')
  return sql<SqlBool>`exists (select 1 from ${place} where place.value in (${sql.join(open)}))`
}

function ofVisibleRecord(ctx: Context): RawBuilder<SqlBool> {
  if (!ctx.user?.visibleOwners) return always
  const through = (table: string, column: string) =>
    sql`exists (select 1 from ${sql.table(table)} as target where target.id = ${sql.ref(column)} and ${visible(ctx, 'target.user_id')})`
  const ways = [
    visible(ctx, 'emails.user_id'),
    through('leads', 'emails.lead_id'),
    through('persons', 'emails.person_id'),
    ...(hasPermission(ctx, folderKeys.inbox)
      ? [
          sql`(emails.source = 'email' and emails.user_id is null and emails.lead_id is null and emails.person_id is null)`,
        ]
      : []),
  ]
  return sql<SqlBool>`(${sql.join(ways, sql` or `)})`
}

/** The condition on rows of `emails`, for every query that shows some. */
export function visibleEmail(ctx: Context): RawBuilder<SqlBool> {
  const seen = sql<SqlBool>`(${ofVisibleRecord(ctx)} and ${inOpenFolder(ctx)})`
  // Who sees all sees it anyway.
  const isLimited = (ctx.user?.visibleOwners ?? null) !== null || !opensEach(ctx)
  return isLimited && ctx.visibleRecord?.table === 'emails'
    ? sql<SqlBool>`(${seen} or emails.id = ${ctx.visibleRecord.id})`
    : seen
}
