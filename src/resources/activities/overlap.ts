// Refuses an open meeting that overlaps another open meeting with the same owner or participant.
// The owner counts as a participant.
import { type SqlBool, sql } from 'kysely'
import type { Context } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import { visibleActivity } from './links.ts'

export interface Meeting {
  /** Null for a new meeting. */
  id: number | null
  from: string
  to: string
  users: readonly number[]
  persons: readonly number[]
}

/**
 * Throws 409 `schedule_conflict` when other open meetings overlap this one. The error lists up to
 * 20 of them. A meeting that the caller may not see has a null id.
 */
export async function refuseOverlap(ctx: Context, { id, from, to, users, persons }: Meeting): Promise<void> {
  const attends = (column: 'user_id' | 'person_id', ids: readonly number[]) =>
    sql<SqlBool>`exists (select 1 from activity_participants as part where part.activity_id = activities.id and ${sql.ref(`part.${column}`)} in (${sql.join(ids)}))`
  const shares = [
    ...(users.length > 0 ? [sql<SqlBool>`activities.user_id in (${sql.join(users)})`, attends('user_id', users)] : []),
    ...(persons.length > 0 ? [attends('person_id', persons)] : []),
  ]
  if (shares.length === 0) return
  let meetings = ctx.db
    .selectFrom('activities')
    .select(['activities.id', sql<number>`case when ${visibleActivity(ctx)} then 1 else 0 end`.as('is_visible')])
    .where('activities.type', '=', 'meeting')
    .where('activities.is_done', '=', 0)
    .where('activities.schedule_from', '<', to)
    .where('activities.schedule_to', '>', from)
    .where(sql<SqlBool>`(${sql.join(shares, sql` or `)})`)
  if (id !== null) meetings = meetings.where('activities.id', '<>', id)
  const found = await meetings.orderBy('activities.id').limit(20).execute()
  if (found.length === 0) return
  throw new Problem(
    'schedule_conflict',
    'The meeting overlaps another one of its owner or participants; allow_overlap accepts that.',
    {
      conflicts: found.map((each) => ({
        entity_type: 'activities',
        id: Number(each.is_visible) === 1 ? each.id : null,
        field: 'schedule_from',
      })),
    },
  )
}
