// Changes of a mail that no body asks for: it is sent, comes out of the trash, or goes to another user. Each is an
// `email.update` like any other.
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { Problem, ValidationErrors } from '../../kernel/errors.ts'
import { transaction, write } from '../../kernel/write/write.ts'
import { checkComplete, isEditable } from './content.ts'
import { filedOf, outgoing, putInto, refiled, restored } from './folders.ts'
import { queueIfDue, queueSending } from './queue.ts'
import { emails } from './resource.ts'

type Email = Schema<'Email'>

/** One change of one mail the caller sees, unless `check` refuses it. */
export async function change(
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
        const before = await filedOf(ctx, id)
        await work(ctx, mail)
        await queueIfDue(ctx, id, before)
        await emails.touch(ctx, id)
        // It may be in a folder now that the caller cannot open.
        return { id, entity: { ...(await emails.get({ ...ctx, visibleRecord: { table: 'emails', id } }, id)) } }
      },
    )
    return entity as Email
  })
}

function checkSendable(mail: Email): void {
  if (!isEditable(mail))
    throw new Problem('state_conflict', `The e-mail is ${mail.status}; only a draft or one that failed can be sent.`)
  const found = new ValidationErrors()
  checkComplete(found, mail)
  found.throwIfAny()
}

/** Queues a draft, or a mail that failed, which starts anew. Throws 409 for any other, 422 for one that is not complete. */
export const send = (ctx: Context, id: number): Promise<Email> =>
  change(ctx, id, {}, checkSendable, async (ctx) => {
    await putInto(ctx, id, outgoing(await filedOf(ctx, id)))
    await ctx.db
      .updateTable('emails')
      .set({ status: 'queued', error: null, attempts: 0 })
      .where('id', '=', id)
      .execute()
    await queueSending(ctx, id)
  })

/** Shows a thread anew because of an answer: its first mail lies in the inbox again, also out of the trash, and is unread. */
export async function surface(ctx: Context, threadId: number, answer: number): Promise<void> {
  // Whatever answers is younger; the first mail of all may be gone.
  const root = await ctx.db
    .selectFrom('emails')
    .select(['id', 'is_read'])
    .where('thread_id', '=', threadId)
    .where('id', '<>', answer)
    .orderBy('id')
    .executeTakeFirst()
  if (!root) return
  const filed = await filedOf(ctx, root.id)
  if (filed.folders.includes('inbox') && root.is_read === 0) return
  const folders = [...filed.folders.filter((each) => each !== 'trash'), 'inbox' as const]
  const input = { folders, is_read: false }
  await change(
    ctx,
    root.id,
    input,
    () => undefined,
    async (ctx) => {
      await putInto(ctx, root.id, refiled(filed, folders))
      await ctx.db.updateTable('emails').set({ is_read: 0 }).where('id', '=', root.id).execute()
    },
  )
}

function checkTrashed({ folders }: Email): void {
  if (!folders.includes('trash')) throw new Problem('state_conflict', 'The e-mail is not in the trash.')
}

/** Throws 409 for a mail that is not in the trash. */
export const untrash = (ctx: Context, id: number): Promise<Email> =>
  change(ctx, id, {}, checkTrashed, async (ctx, { status }) =>
    putInto(ctx, id, restored(await filedOf(ctx, id), status)),
  )

/** Mails that go to another user because theirs is deleted, in whatever folder they lie. */
export const inheritedEmails = {
  table: emails.table,
  update: (ctx: Context, id: number, owner: { user_id?: number | null }) =>
    change(
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
