// Computes and stores the folders of an e-mail. The server sets draft, outbox and
// sent; users set the other folders. A move to the trash replaces all folders and keeps the old
// folders in `kept`, for a restore.
import type { Context } from '../../kernel/context.ts'
import type { ValidationErrors } from '../../kernel/errors.ts'
import { allFolders, type EmailFolder } from './visibility.ts'

/**
 * `folders` are the current folders. `kept` are the folders from which an e-mail was moved to the
 * trash; it is empty for e-mails outside the trash.
 */
export interface EmailFolders {
  folders: readonly EmailFolder[]
  kept: readonly EmailFolder[]
}

const isSetByServer = (folder: EmailFolder): boolean => ['draft', 'outbox', 'sent'].includes(folder)
const inOrder = (folders: readonly EmailFolder[]): EmailFolder[] => allFolders.filter((each) => folders.includes(each))
const isTrashed = ({ folders }: EmailFolders): boolean => folders.includes('trash')

export function folderOfStatus(status: string): EmailFolder {
  if (status === 'draft' || status === 'sent') return status
  return status === 'received' ? 'inbox' : 'outbox'
}

/** Returns the folders after a user moves the e-mail to the folders `wanted`. */
export function foldersAfterMove(now: EmailFolders, wanted: readonly EmailFolder[]): EmailFolders {
  const own = wanted.filter((folder) => !isSetByServer(folder))
  if (own.includes('trash')) return { folders: inOrder(own), kept: isTrashed(now) ? now.kept : now.folders }
  const before = isTrashed(now) ? now.kept : now.folders
  return { folders: inOrder([...before.filter(isSetByServer), ...own]), kept: [] }
}

export const foldersAfterRestore = ({ kept }: EmailFolders, status: string): EmailFolders => ({
  folders: kept.length > 0 ? inOrder(kept) : [folderOfStatus(status)],
  kept: [],
})

/** Returns the folders of an e-mail that will be sent: `outbox` replaces `draft` and `trash`. */
export function foldersWhenQueued(now: EmailFolders): EmailFolders {
  const before = isTrashed(now) ? now.kept : now.folders
  return { folders: inOrder([...before.filter((folder) => !isSetByServer(folder)), 'outbox']), kept: [] }
}

/** Returns the folders of a sent e-mail: `sent` replaces `outbox`, also in `kept`. */
export const foldersWhenSent = (now: EmailFolders): EmailFolders => replaceBySent('outbox', now)

/**
 * Returns the folders of a draft that another mail program sent: `sent` replaces `draft`, also in
 * `kept`.
 */
export const foldersOfSentDraft = (now: EmailFolders): EmailFolders => replaceBySent('draft', now)

function replaceBySent(place: EmailFolder, { folders, kept }: EmailFolders): EmailFolders {
  const [now, before] = [folders, kept].map((each) => inOrder(each.map((one) => (one === place ? 'sent' : one))))
  return { folders: now ?? [], kept: before ?? [] }
}

/**
 * Reports each folder that only the server may add. Also reports an e-mail that would be in no
 * folder.
 */
export function checkFolders(errors: ValidationErrors, now: EmailFolders, wanted: readonly EmailFolder[]): void {
  for (const [index, folder] of wanted.entries()) {
    if (isSetByServer(folder) && !now.folders.includes(folder) && !now.kept.includes(folder))
      errors.invalid(`folders.${index}`, `Only the server puts e-mails into ${folder}.`)
  }
  if (foldersAfterMove(now, wanted).folders.length === 0)
    errors.invalid('folders', 'An e-mail must be in at least one folder.')
}

export async function foldersOf({ db }: Context, id: number): Promise<EmailFolders> {
  const rows = await db.selectFrom('email_folders').select('folder').where('email_id', '=', id).execute()
  const { kept_folders: kept } = await db
    .selectFrom('emails')
    .select('kept_folders')
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  return { folders: inOrder(rows.map(({ folder }) => folder as EmailFolder)), kept: JSON.parse(kept) as EmailFolder[] }
}

export async function storeFolders({ db }: Context, id: number, { folders, kept }: EmailFolders): Promise<void> {
  await db.deleteFrom('email_folders').where('email_id', '=', id).execute()
  await db
    .insertInto('email_folders')
    .values(folders.map((folder) => ({ email_id: id, folder })))
    .execute()
  await db
    .updateTable('emails')
    .set({ kept_folders: JSON.stringify(inOrder(kept)) })
    .where('id', '=', id)
    .execute()
}

/** Adds the folders to each e-mail of a page, with one query. */
export async function loadFolders(
  { db }: Context,
  replies: readonly { id: number; folders: EmailFolder[] }[],
): Promise<void> {
  const rows = await db
    .selectFrom('email_folders')
    .selectAll()
    .where(
      'email_id',
      'in',
      replies.map(({ id }) => id),
    )
    .execute()
  for (const reply of replies)
    reply.folders = inOrder(rows.flatMap((row) => (row.email_id === reply.id ? [row.folder as EmailFolder] : [])))
}
