// Where a lead goes: looks up what stages.ts needs to decide, and what a new lead gets when it is told nothing (DOMAIN 9.1, 9.2).
import type { Schema } from '../../contract/types.ts'
import { stamp } from '../../kernel/clock.ts'
import { type Context, now } from '../../kernel/context.ts'
import { fold } from '../../kernel/format.ts'
import type { Writing } from '../../kernel/resource.ts'
import { chooseStage, enter, type Standing } from './stages.ts'

/** Where a lead goes and what follows from it; nothing when the body names no stage and no closing detail. */
export async function movement({ ctx, current, found }: Writing<Standing>, body: Schema<'LeadUpdate'>) {
  const { lead_pipeline_id, lead_pipeline_stage_id, closed_at, lost_reason } = body
  if (current && [lead_pipeline_id, lead_pipeline_stage_id, closed_at, lost_reason].every((each) => each === undefined))
    return {}
  const stages = await ctx.db
    .selectFrom('lead_pipeline_stages')
    .select(['id', 'lead_pipeline_id', 'code', 'sort_order'])
    .execute()
  const { id } = await ctx.db
    .selectFrom('lead_pipelines')
    .select('id')
    .where('is_default', '=', 1)
    .executeTakeFirstOrThrow()
  const stage = chooseStage(stages, id, current, body, found)
  if (!stage) return {}
  return enter(stage, current, body, now(ctx), stamp(new Date(ctx.time.getTime() + 60_000)), found)
}

/** The named row of a vocabulary, else the one of the lowest id (DOMAIN 9.1). */
export async function fallback(ctx: Context, table: 'lead_sources' | 'lead_types', name: string): Promise<number> {
  const rows = await ctx.db.selectFrom(table).select(['id', 'name_key']).orderBy('id').execute()
  const row = rows.find(({ name_key }) => name_key === fold(name)) ?? rows[0]
  if (!row) throw new Error(`${table} is empty; the last row cannot be deleted.`)
  return row.id
}
