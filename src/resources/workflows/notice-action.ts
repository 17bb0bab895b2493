// The workflow action that sends an e-mail to users of this installation. The e-mail is a notice of
// the server and no record, so it is not in the list of e-mails.
import type { Context } from '../../kernel/context.ts'
import { mailUsers } from '../authentication/user-mail.ts'
import { placeholdersFrom } from '../email-templates/placeholder-values.ts'
import { fillIn, maxFilledLength } from '../email-templates/placeholders.ts'
import { type ActionEffect, type ActionSubject, actionRefused } from './action-subject.ts'
import type { Action } from './actions.ts'
import { activeOwnerOf } from './email-actions.ts'

type Notice = NonNullable<Action['notice']>

const noticeIn = ({ notice }: Action): Notice => {
  if (!notice) throw actionRefused('The action has no notice.')
  return notice
}

/** Returns the ids of the recipients. Throws a Problem when no active user gets the notice. */
async function recipientsOf(ctx: Context, about: ActionSubject, { user_id, group_id }: Notice): Promise<number[]> {
  if (user_id === null && group_id === null) return [(await activeOwnerOf(ctx, about)).id]
  const active = ctx.db.selectFrom('users').select('id').where('is_active', '=', 1).orderBy('id')
  const members = ctx.db.selectFrom('user_groups').select('user_id')
  const rows = await (user_id === null
    ? active.where('id', 'in', members.where('group_id', '=', Number(group_id)))
    : active.where('id', '=', user_id)
  ).execute()
  if (rows.length === 0)
    throw actionRefused(user_id === null ? 'The group has no active user.' : 'The user of the notice is not active.')
  return rows.map(({ id }) => id)
}

async function contentOf(ctx: Context, { entity, record }: ActionSubject, { subject, text }: Notice) {
  const facts = await placeholdersFrom(ctx, entity, record)
  const title = fillIn(subject, facts, 'text', maxFilledLength.subject)
  const body = fillIn(text, facts, 'text', maxFilledLength.content)
  if (!title || !body) throw actionRefused('The notice is too long for a mail once it is filled in.')
  return { subject: title.filled, paragraphs: body.filled.split(/(?:\r?\n){2,}/) }
}

const notify: ActionEffect = {
  async act(ctx, about, action, { runId, index }) {
    const notice = noticeIn(action)
    const users = await recipientsOf(ctx, about, notice)
    const content = await contentOf(ctx, about, notice)
    await mailUsers(
      ctx,
      users.map((id) => ({ ...content, user_id: id, messageKey: `workflow-${runId}-${index}-${id}` })),
    )
    return { user_ids: users }
  },
  async describe(ctx, about, action) {
    const { length } = await recipientsOf(ctx, about, noticeIn(action))
    const { subject } = await contentOf(ctx, about, noticeIn(action))
    return `Send the notice "${subject}" to ${length === 1 ? 'one user' : `${length} users`}.`
  },
}

export const noticeAction = { notify } satisfies Record<string, ActionEffect>
