// Changes an e-mail outside a normal update: sending, restoring from the trash, and a new owner.
// Each change emits the events of `email.update`.
import type { Schema } from '../../contract/types.ts'
import { type Context, now } from '../../kernel/context.ts'
import { Problem, ValidationErrors } from '../../kernel/errors.ts'
import { transaction, write } from '../../kernel/write/write.ts'
import { checkComplete, isEditable } from './content.ts'
import { foldersAfterMove, foldersAfterRestore, foldersOf, foldersWhenQueued, storeFolders } from './folders.ts'
import { queueIfDue, queueSending } from './queue.ts'
import { emails } from './resource.ts'

type Email = Schema<'Email'>

/**
 * Runs `work` in a transaction to change an e-mail that the caller may see. `check` may throw to
 * refuse the change.
 */
export async function changeEmail(
  ctx: Context,
  id: number,
  input: object,
  check: (mail: Email) => void,
  work: (ctx: Context, mail: Email) => Promise<void>,
): Promise<Email> {
  return transaction(ctx, async (ctx) => {
    await emails.assertVisible(ctx, id)
    const mail = await emails.get(ctx, id)
    check(mail)
    const { entity } = await write(
      ctx,
      'email.update',
      { entity: 'emails', input, id, before: { ...mail } },
      async (ctx) => {
        const before = await foldersOf(ctx, id)
        await work(ctx, mail)
        await queueIfDue(ctx, id, before)
        await emails.touch(ctx, id)
        // The change may move the e-mail to a folder that the caller cannot open; `visibleRecord`
        // keeps it readable.
        return { id, entity: { ...(await emails.get({ ...ctx, visibleRecord: { table: 'emails', id } }, id)) } }
      },
    )
    return entity as Email
  })
}

function checkSendable(mail: Email): void {
  if (!isEditable(mail))
    throw new Problem('state_conflict', `The e-mail is ${mail.status}; only a draft or one that failed can be sent.`)
  const errors = new ValidationErrors()
  checkComplete(errors, mail)
  errors.throwIfAny()
}

/**
 * Queues a draft or a failed e-mail for sending and resets its attempts to 0. Throws 409 for an
 * e-mail in another state, and 422 for an incomplete one.
 */
export const queueEmail = (ctx: Context, id: number): Promise<Email> =>
  changeEmail(ctx, id, {}, checkSendable, async (ctx) => {
    await storeFolders(ctx, id, foldersWhenQueued(await foldersOf(ctx, id)))
    await ctx.db
      .updateTable('emails')
      // The lead of a sent draft is touched at the time of this change (migration 0028).
      .set({ status: 'queued', error: null, attempts: 0, updated_at: now(ctx) })
      .where('id', '=', id)
      .execute()
    await queueSending(ctx, id)
  })

/**
 * Moves the first e-mail of a thread back to the inbox and marks it unread, because a reply
 * arrived. `answer` is the id of that reply.
 */
export async function moveThreadToInbox(ctx: Context, threadId: number, answer: number): Promise<void> {
  // The first e-mail of the thread may have been deleted. The query finds the oldest remaining
  // e-mail, which has the lowest id.
  const root = await ctx.db
    .selectFrom('emails')
    .select(['id', 'is_read'])
    .where('thread_id', '=', threadId)
    .where('id', '<>', answer)
    .orderBy('id')
    .executeTakeFirst()
  if (!root) return
  const filed = await foldersOf(ctx, root.id)
  if (filed.folders.includes('inbox') && root.is_read === 0) return
  const folders = [...filed.folders.filter((each) => each !== 'trash'), 'inbox' as const]
  const input = { folders, is_read: false }
  await changeEmail(
    ctx,
    root.id,
    input,
    () => undefined,
    async (ctx) => {
      await storeFolders(ctx, root.id, foldersAfterMove(filed, folders))
      await ctx.db.updateTable('emails').set({ is_read: 0 }).where('id', '=', root.id).execute()
    },
  )
}

function checkTrashed({ folders }: Email): void {
  if (!folders.includes('trash')) throw new Problem('state_conflict', 'The e-mail is not in the trash.')
}

/** Restores an e-mail from the trash. Throws 409 when the e-mail is not in the trash. */
export const restoreFromTrash = (ctx: Context, id: number): Promise<Email> =>
  changeEmail(ctx, id, {}, checkTrashed, async (ctx, { status }) =>
    storeFolders(ctx, id, foldersAfterRestore(await foldersOf(ctx, id), status)),
  )

/** Transfers the e-mails of a deleted user, in all folders, to another user. */
export const inheritedEmails = {
  table: emails.table,
  update: (ctx: Context, id: number, owner: { user_id?: number | null }) =>
    changeEmail(
      { ...ctx, visibleRecord: { table: 'emails', id } },
      id,
      owner,
      () => undefined,
      async ({ db }) => {
        await db
          .updateTable('emails')
          .set({ user_id: owner.user_id ?? null })
          .where('id', '=', id)
          .execute()
      },
    ),
}
