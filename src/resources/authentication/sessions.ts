// Presents, begins and ends sessions, with events. Also defines who may see these events.
// kernel/auth/sessions.ts checks whether a session is valid.
import { type SqlBool, sql } from 'kysely'
import { operations } from '../../contract/operations.gen.ts'
import type { Schema } from '../../contract/types.ts'
import { idleSince, startSession } from '../../kernel/auth/sessions.ts'
import { type CallingSession, type Context, canCall, now } from '../../kernel/context.ts'
import { always, type Sight } from '../../kernel/query/event-visibility.ts'
import { visible } from '../../kernel/query/visibility.ts'
import { write } from '../../kernel/write/write.ts'

/**
 * The maximum number of sessions per user. When there are more, the least recently used ones end.
 */
const maxSessions = 50
const columns = [
  'id',
  'user_id',
  'ip',
  'user_agent',
  'is_remembered',
  'last_used_at',
  'expires_at',
  'created_at',
] as const

/**
 * Selects all sessions without their hashes, including expired ones that have not been deleted yet.
 */
export const sessionRows = ({ db }: Context) => db.selectFrom('sessions').select(columns)

/** Selects the sessions that have not expired. */
export const validSessions = (ctx: Context) =>
  sessionRows(ctx)
    .where('expires_at', '>', now(ctx))
    .where((eb) => eb.or([eb('is_remembered', '=', 1), eb('last_used_at', '>', idleSince(ctx.time))]))

type Row = Awaited<ReturnType<ReturnType<typeof sessionRows>['executeTakeFirstOrThrow']>>

/** Returns the snapshot for events. Unlike a reply, it does not depend on the caller. */
const snapshotOf = (row: Row) => ({
  id: row.id,
  user_id: row.user_id,
  ip: row.ip,
  user_agent: row.user_agent,
  is_remembered: row.is_remembered === 1,
  created_at: row.created_at,
  last_used_at: row.last_used_at,
  expires_at: row.expires_at,
})

export const presentSession = ({ session }: Context, row: Row): Schema<'Session'> => ({
  ...snapshotOf(row),
  is_current: row.id === session?.id,
})

/**
 * Begins a session: sets its cookies and emits its events. Ends the least recently used sessions
 * over the limit.
 */
export async function beginSession(ctx: Context, userId: number, isRemembered: boolean): Promise<CallingSession> {
  const begun: CallingSession[] = []
  await write(ctx, 'user.session.create', { entity: 'sessions', input: { remember: isRemembered } }, async (ctx) => {
    const session = await startSession(ctx, userId, isRemembered)
    begun.push(session)
    const row = await sessionRows(ctx).where('id', '=', session.id).executeTakeFirstOrThrow()
    return { id: session.id, entity: snapshotOf(row) }
  })
  const [session] = begun
  if (!session) throw new Error('The session was not begun.')
  const kept = await sessionRows(ctx)
    .where('user_id', '=', userId)
    .where('id', '!=', session.id)
    .orderBy('last_used_at', 'desc')
    .orderBy('id', 'desc')
    .execute()
  for (const row of kept.slice(maxSessions - 1)) await endSession(ctx, row)
  return session
}

/**
 * Ends a session and emits its `before` and `after` events. From the commit on, requests with this
 * session are refused.
 */
export async function endSession(ctx: Context, row: Row): Promise<void> {
  const { id } = row
  await write(
    ctx,
    'user.session.delete',
    { entity: 'sessions', input: {}, id, before: snapshotOf(row) },
    async ({ db }) => {
      await db.deleteFrom('sessions').where('id', '=', id).execute()
      return { id, entity: null }
    },
  )
}

/** Ends all sessions of a user except the calling one. */
export async function endOtherSessions(ctx: Context, userId: number): Promise<void> {
  const all = sessionRows(ctx).where('user_id', '=', userId).orderBy('id')
  const others = ctx.session ? all.where('id', '!=', ctx.session.id) : all
  for (const row of await others.execute()) await endSession(ctx, row)
}

const mayReadOthers = (ctx: Context): boolean => canCall(ctx, operations.listUsers)

/**
 * Defines who may see session events and failed logins: the user of the session, and callers who
 * may read that user.
 */
export const sessionSight: Sight = {
  lists: operations.listAccountSessions,
  records: {
    table: 'sessions',
    deleted: 'user.session.delete',
    inSight(ctx) {
      const ids = ctx.db.selectFrom('sessions').select('sessions.id')
      if (!ctx.user) return ids
      return mayReadOthers(ctx)
        ? ids.where(visible(ctx, 'sessions.user_id'))
        : ids.where('sessions.user_id', '=', ctx.user.id)
    },
    wasInSight(ctx) {
      if (!ctx.user) return always
      const isOwn = sql<SqlBool>`known.owner_id = ${ctx.user.id}`
      return mayReadOthers(ctx) ? sql<SqlBool>`(${isOwn} or ${visible(ctx, 'known.owner_id')})` : isOwn
    },
  },
}
