// Where mails lie (DOMAIN 14.2). Draft, outbox and sent follow from what happens to a mail; the rest is for users to set. The
// trash takes a mail out of all other folders and remembers them.
import type { Context } from '../../kernel/context.ts'
import type { ValidationErrors } from '../../kernel/errors.ts'
import { allFolders, type Folder } from './visibility.ts'

/** The folders of a mail, and while it is in the trash those it was in before. */
export interface Filed {
  folders: readonly Folder[]
  kept: readonly Folder[]
}

const ofServer = (folder: Folder): boolean => ['draft', 'outbox', 'sent'].includes(folder)
const inOrder = (folders: readonly Folder[]): Folder[] => allFolders.filter((each) => folders.includes(each))
const isTrashed = ({ folders }: Filed): boolean => folders.includes('trash')

/** The folder that goes with a state. */
export function homeOf(status: string): Folder {
  if (status === 'draft' || status === 'sent') return status
  return status === 'received' ? 'inbox' : 'outbox'
}

/** Where a mail lies once a user asked for these folders. */
export function refiled(now: Filed, wanted: readonly Folder[]): Filed {
  const own = wanted.filter((folder) => !ofServer(folder))
  if (own.includes('trash')) return { folders: inOrder(own), kept: isTrashed(now) ? now.kept : now.folders }
  const before = isTrashed(now) ? now.kept : now.folders
  return { folders: inOrder([...before.filter(ofServer), ...own]), kept: [] }
}

/** Out of the trash, to where it was before. */
export const restored = ({ kept }: Filed, status: string): Filed => ({
  folders: kept.length > 0 ? inOrder(kept) : [homeOf(status)],
  kept: [],
})

/** On its way to be sent: no draft any more, and nothing thrown away. */
export function outgoing(now: Filed): Filed {
  const before = isTrashed(now) ? now.kept : now.folders
  return { folders: inOrder([...before.filter((folder) => !ofServer(folder)), 'outbox']), kept: [] }
}

/** Sent: in the place of where it waited, also while it is in the trash. */
export const delivered = (now: Filed): Filed => sentFrom('outbox', now)

/** The same for a draft that was sent elsewhere. */
export const completed = (now: Filed): Filed => sentFrom('draft', now)

function sentFrom(place: Folder, { folders, kept }: Filed): Filed {
  const [now, before] = [folders, kept].map((each) => inOrder(each.map((one) => (one === place ? 'sent' : one))))
  return { folders: now ?? [], kept: before ?? [] }
}

/** Finds folders that only the server puts a mail into, and that it would be in none. */
export function checkFolders(found: ValidationErrors, now: Filed, wanted: readonly Folder[]): void {
  for (const [index, folder] of wanted.entries()) {
    if (ofServer(folder) && !now.folders.includes(folder) && !now.kept.includes(folder))
      found.invalid(`folders.${index}`, `E-mails come into ${folder} by being written or sent.`)
  }
  if (refiled(now, wanted).folders.length === 0) found.invalid('folders', 'An e-mail is in one folder at least.')
}

/** Where a mail lies now. */
export async function filedOf({ db }: Context, id: number): Promise<Filed> {
  const rows = await db.selectFrom('email_folders').select('folder').where('email_id', '=', id).execute()
  const { kept_folders: kept } = await db
    .selectFrom('emails')
    .select('kept_folders')
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  return { folders: inOrder(rows.map(({ folder }) => folder as Folder)), kept: JSON.parse(kept) as Folder[] }
}

export async function putInto({ db }: Context, id: number, { folders, kept }: Filed): Promise<void> {
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

/** Fills the folders of a page of replies, with one query. */
export async function gatherFolders(
  { db }: Context,
  replies: readonly { id: number; folders: Folder[] }[],
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
    reply.folders = inOrder(rows.flatMap((row) => (row.email_id === reply.id ? [row.folder as Folder] : [])))
}
