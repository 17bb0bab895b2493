// The visibility rule for the events of a resource. A caller sees the events of records in the
// list, and of deleted records that were in the list (query/event-visibility.ts).
import { type SqlBool, sql } from 'kysely'
import type { Context } from '../context.ts'
import { always } from '../query/event-visibility.ts'
import { wasVisible, withoutVisibility } from '../query/visibility.ts'
import type { AnyResource, ResourceParts } from './any-definition.ts'

export function sightOfRecords({ d, facts, rows }: ResourceParts): AnyResource['sight'] {
  const { table } = d

  /**
   * Returns whether the caller sees all rows: the query then has the same SQL as for a caller with
   * a global view.
   */
  const seesAll = (ctx: Context): boolean => {
    const condition = (ctx: Context): string => d.rows(ctx, ctx.db).clearSelect().compile().sql
    return condition(ctx) === condition(withoutVisibility(ctx))
  }

  return {
    lists: facts.listOperation,
    records: {
      table,
      deleted: facts.events.delete,
      seen: rows.visibleIds,
      async inSight(ctx) {
        const found = (await rows.query(ctx, {})).clearSelect().clearOrderBy()
        return found.select(sql<number>`${sql.ref(`${table}.id`)}`.as('id'))
      },
      wasInSight(ctx) {
        const isOwnerSeen = seesAll(ctx) ? always : wasVisible(ctx, table)
        return d.wasInSight ? sql<SqlBool>`(${isOwnerSeen} and ${d.wasInSight(ctx)})` : isOwnerSeen
      },
    },
    maxLoggedTextLength: d.maxLoggedTextLength,
    ...(d.asRead && { asRead: d.asRead }),
  }
}
