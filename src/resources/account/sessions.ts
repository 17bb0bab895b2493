// Lists and ends the caller's own sessions. API tokens are not sessions; the tokens API lists them.

import { clearCookies } from '../../kernel/auth/sessions.ts'
import { type Context, requireUser } from '../../kernel/context.ts'
import { notFound } from '../../kernel/errors.ts'
import type { Handler, Handlers } from '../../kernel/handler.ts'
import { page } from '../../kernel/query/page.ts'
import { transaction } from '../../kernel/write/write.ts'
import { endSession, presentSession, validSessions } from '../authentication/sessions.ts'

const ownSessions = (ctx: Context) => validSessions(ctx).where('user_id', '=', requireUser(ctx).id)

const listAccountSessions: Handler<'listAccountSessions'> = async (ctx, { query }) => {
  const { rows, links, meta } = await page(ctx, ownSessions(ctx), query, { id: 'sessions.id' }, 'sessions.id')
  return { data: rows.map((row) => presentSession(ctx, row)), links, meta }
}

const deleteAccountSession: Handler<'deleteAccountSession'> = (ctx, { params: { id } }) =>
  transaction(ctx, async (ctx) => {
    const row = await ownSessions(ctx).where('id', '=', id).executeTakeFirst()
    if (!row) throw notFound('session', id)
    await endSession(ctx, row)
    if (ctx.session?.id === id) clearCookies(ctx)
    return { message: 'Session ended.' }
  })

export const handlers = {
  listAccountSessions,
  deleteAccountSession,
} satisfies Partial<Handlers>
