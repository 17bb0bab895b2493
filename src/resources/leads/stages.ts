// Rules of moving a lead: which stage a body chooses (DOMAIN 9.2), and how entering a stage changes
// status, closing time and reason (9.3). Create, update, move, mass update and stage removal all
// use them. Pure.
import type { EventBase } from '../../contract/types.ts'
import type { ValidationErrors } from '../../kernel/errors.ts'
import type { Snapshot } from '../../kernel/write/events.ts'

export interface Stage {
  id: number
  lead_pipeline_id: number
  code: string
  sort_order: number
}

export interface LeadState {
  lead_pipeline_id: number
  lead_pipeline_stage_id: number
  status: number
  closed_at: string | null
  lost_reason: string | null
}

export interface StageChange {
  lead_pipeline_id?: number | undefined
  lead_pipeline_stage_id?: number | undefined
  closed_at?: string | null | undefined
  lost_reason?: string | null | undefined
}

/** The stored status of a lead. */
export const leadStatus = { open: 1, won: 2, lost: 3 } as const

export const statusOfStage = (code: string): number =>
  code === 'won' || code === 'lost' ? leadStatus[code] : leadStatus.open

const outcomeByStatus: Record<number, EventBase> = {
  [leadStatus.open]: 'lead.reopened',
  [leadStatus.won]: 'lead.won',
  [leadStatus.lost]: 'lead.lost',
}

/** Returns the additional events of an update that changes the status (DOMAIN 17.2). */
export const outcomeEvents = (before: Snapshot, after: Snapshot): EventBase[] =>
  before.status === after.status ? [] : [outcomeByStatus[Number(after.status)] ?? []].flat()

/**
 * Returns the stage that a body chooses. When it chooses no valid stage, adds an error and returns
 * undefined.
 */
export function chooseStage(
  stages: readonly Stage[],
  defaultPipeline: number,
  current: LeadState | null,
  move: StageChange,
  found: ValidationErrors,
): Stage | undefined {
  const { lead_pipeline_id: pipeline, lead_pipeline_stage_id: stageId } = move
  const first = (of: number): Stage | undefined =>
    stages.filter((stage) => stage.lead_pipeline_id === of).sort((a, b) => a.sort_order - b.sort_order)[0]
  if (pipeline !== undefined && !first(pipeline)) {
    found.invalid('lead_pipeline_id', `No pipeline has id ${pipeline}.`)
    return undefined
  }
  if (stageId !== undefined) {
    const stage = stages.find(({ id }) => id === stageId)
    if (!stage) found.invalid('lead_pipeline_stage_id', `No stage has id ${stageId}.`)
    // A client that sends back a fetched lead sends the old stage beside a new pipeline; the
    // changed value wins.
    else if (pipeline !== undefined && stage.lead_pipeline_id !== pipeline) {
      if (current && stageId === current.lead_pipeline_stage_id) return first(pipeline)
      if (current && pipeline === current.lead_pipeline_id) return stage
      found.invalid('lead_pipeline_stage_id', 'This stage belongs to another pipeline.')
      return undefined
    }
    return stage
  }
  if (pipeline !== undefined && pipeline !== current?.lead_pipeline_id) return first(pipeline)
  if (current) return stages.find(({ id }) => id === current.lead_pipeline_stage_id)
  return first(defaultPipeline)
}

/**
 * Returns the columns after the lead enters `stage`. A value equal to the stored one counts as not
 * sent, so that a client can change only the stage of a lead it sends back. `latest` is the last
 * allowed closing time.
 */
export function enterStage(
  stage: Stage,
  current: LeadState | null,
  move: StageChange,
  at: string,
  latest: string,
  found: ValidationErrors,
) {
  const status = statusOfStage(stage.code)
  const closedAt = current && move.closed_at === current.closed_at ? undefined : move.closed_at
  const reason = current && move.lost_reason === current.lost_reason ? undefined : move.lost_reason
  const sameStatus = current?.status === status
  if (status === leadStatus.open && closedAt) found.invalid('closed_at', 'Only a won or lost lead has a closing time.')
  if (status !== leadStatus.open && sameStatus && closedAt === null)
    found.invalid('closed_at', 'A won or lost lead has a closing time.')
  if (closedAt && closedAt > latest) found.invalid('closed_at', 'A lead cannot be closed in the future.')
  if (status !== leadStatus.lost && reason) found.invalid('lost_reason', 'Only a lost lead has a reason.')
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
