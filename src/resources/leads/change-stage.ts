// Stage changes of leads. `chooseStage` finds the stage that a request names, and `enterStage`
// derives status, closing time and lost reason from it. Both read no database; `planStageChange`
// reads the stages for them. Every write that changes a stage uses these rules.
import { cachedQuery } from '../../../db/cached-query.ts'
import type { Db } from '../../../db/store.ts'
import type { EventBase, Schema } from '../../contract/types.ts'
import { isBeingRemoved } from '../../jobs/removals.ts'
import { now } from '../../kernel/context.ts'
import type { ValidationErrors } from '../../kernel/errors.ts'
import type { Writing } from '../../kernel/resource/define-resource.ts'
import { stamp } from '../../kernel/runtime/clock.ts'
import type { Snapshot } from '../../kernel/write/events.ts'
import { defaultPipelineId } from '../pipelines/moves.ts'
import { isStageLeaving } from '../pipelines/resource.ts'
import { checkClosedMonths } from './outcomes.ts'

interface Stage {
  id: number
  lead_pipeline_id: number
  code: string
  sort_order: number
}

interface LeadState {
  lead_pipeline_id: number
  lead_pipeline_stage_id: number
  status: number
  closed_at: string | null
  lost_reason: string | null
}

interface StageChange {
  lead_pipeline_id?: number | undefined
  lead_pipeline_stage_id?: number | undefined
  closed_at?: string | null | undefined
  lost_reason?: string | null | undefined
}

/** The sentences about a closing time or reason that the stage excludes; imports use them, too. */
export const closingFaults = {
  isOpen: 'Only a won or lost lead has a closing time.',
  isInFuture: 'A lead cannot be closed in the future.',
  hasReason: 'Only a lost lead has a reason.',
}

/** The numbers in the column `status` of a lead. */
export const leadStatus = { open: 1, won: 2, lost: 3 } as const

export const statusOfStage = (code: string): number =>
  code === 'won' || code === 'lost' ? leadStatus[code] : leadStatus.open

const outcomeByStatus: Record<number, EventBase> = {
  [leadStatus.open]: 'lead.reopened',
  [leadStatus.won]: 'lead.won',
  [leadStatus.lost]: 'lead.lost',
}

/**
 * Returns the additional event of an update that changes the status of a lead, or of the creation
 * of a won or lost lead. Returns none for other changes.
 */
export const outcomeEvents = (before: Snapshot | undefined, after: Snapshot): EventBase[] =>
  (before?.status ?? leadStatus.open) === after.status ? [] : [outcomeByStatus[Number(after.status)] ?? []].flat()

const allStages = cachedQuery((db: Db) =>
  db
    .selectFrom('lead_pipeline_stages')
    .select(['id', 'lead_pipeline_id', 'code', 'sort_order'])
    .select(isBeingRemoved('pipelines', 'lead_pipeline_id').as('is_changing')),
)

/**
 * Returns the columns that a stage change sets. Returns no columns for an update that sends none of
 * pipeline, stage, closing time and lost reason.
 */
export async function planStageChange(
  { ctx, current, errors }: Writing<LeadState>,
  body: Schema<'LeadUpdate'>,
): Promise<Partial<ReturnType<typeof enterStage>>> {
  const { lead_pipeline_id, lead_pipeline_stage_id, closed_at, lost_reason } = body
  if (current && [lead_pipeline_id, lead_pipeline_stage_id, closed_at, lost_reason].every((each) => each === undefined))
    return {}
  // Closing time and lost reason are checked against the stage, so these checks are skipped when
  // the stage or pipeline is refused.
  if (errors.isRefused('lead_pipeline_id') || errors.isRefused('lead_pipeline_stage_id')) return {}
  const stages = await allStages(ctx.db)
  const stage = chooseStage(stages, await defaultPipelineId(ctx), current, body, errors)
  if (!stage) return {}
  const isEntering = current?.lead_pipeline_stage_id !== stage.id
  if (isEntering && stage.is_changing && (await isStageLeaving(ctx, stage.lead_pipeline_id, stage.id))) {
    const field = lead_pipeline_stage_id === undefined ? 'lead_pipeline_id' : 'lead_pipeline_stage_id'
    errors.invalid(field, `The stage ${stage.id} is being removed.`)
  }
  const entered = enterStage(stage, current, body, now(ctx), stamp(new Date(ctx.time.getTime() + 60_000)), errors)
  const { closed_at: time, status } = entered
  if (closed_at && time !== current?.closed_at)
    await checkClosedMonths(ctx, [time, current?.status === status ? current.closed_at : null], errors)
  return entered
}

/**
 * Returns the stage that `move` specifies by stage id or pipeline id. Without an id, returns the
 * current stage, or for a new lead the first stage of the default pipeline. Adds an error and
 * returns undefined for an invalid id.
 */
function chooseStage<S extends Stage>(
  stages: readonly S[],
  defaultPipeline: number,
  current: LeadState | null,
  move: StageChange,
  errors: ValidationErrors,
): S | undefined {
  const { lead_pipeline_id: pipeline, lead_pipeline_stage_id: stageId } = move
  const first = (of: number): S | undefined =>
    stages.filter((stage) => stage.lead_pipeline_id === of).sort((a, b) => a.sort_order - b.sort_order)[0]
  if (pipeline !== undefined && !first(pipeline)) {
    errors.invalid('lead_pipeline_id', `No pipeline has id ${pipeline}.`)
    return undefined
  }
  if (stageId !== undefined) {
    const stage = stages.find(({ id }) => id === stageId)
    if (!stage) errors.invalid('lead_pipeline_stage_id', `No stage has id ${stageId}.`)
    // A client may send back a fetched lead after changing only the pipeline or only the stage. The
    // changed field wins over the unchanged field.
    else if (pipeline !== undefined && stage.lead_pipeline_id !== pipeline) {
      if (current && stageId === current.lead_pipeline_stage_id) return first(pipeline)
      if (current && pipeline === current.lead_pipeline_id) return stage
      errors.invalid('lead_pipeline_stage_id', 'This stage belongs to another pipeline.')
      return undefined
    }
    return stage
  }
  if (pipeline !== undefined && pipeline !== current?.lead_pipeline_id) return first(pipeline)
  if (current) return stages.find(({ id }) => id === current.lead_pipeline_stage_id)
  return first(defaultPipeline)
}

/**
 * Returns the columns of a lead that enters `stage` at the time `at`. A value equal to the stored
 * value counts as not sent, so that a client can send back a fetched lead with only another stage.
 * `latest` is the latest allowed closing time.
 */
function enterStage(
  stage: Stage,
  current: LeadState | null,
  move: StageChange,
  at: string,
  latest: string,
  errors: ValidationErrors,
) {
  const status = statusOfStage(stage.code)
  const closedAt = current && move.closed_at === current.closed_at ? undefined : move.closed_at
  const reason = current && move.lost_reason === current.lost_reason ? undefined : move.lost_reason
  const sameStatus = current?.status === status
  if (status === leadStatus.open && closedAt) errors.invalid('closed_at', closingFaults.isOpen)
  if (status !== leadStatus.open && sameStatus && closedAt === null)
    errors.invalid('closed_at', 'A won or lost lead has a closing time.')
  if (closedAt && closedAt > latest) errors.invalid('closed_at', closingFaults.isInFuture)
  if (status !== leadStatus.lost && reason) errors.invalid('lost_reason', closingFaults.hasReason)
  const isMove = current?.lead_pipeline_stage_id !== stage.id
  return {
    lead_pipeline_id: stage.lead_pipeline_id,
    lead_pipeline_stage_id: stage.id,
    status,
    closed_at: status === leadStatus.open ? null : (closedAt ?? (sameStatus ? current.closed_at : at)),
    lost_reason:
      status !== leadStatus.lost ? null : reason !== undefined ? reason : sameStatus ? current.lost_reason : null,
    ...(isMove && { stage_changed_at: at }),
  }
}
