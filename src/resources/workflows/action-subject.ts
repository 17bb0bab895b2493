// The record that the actions of a run act on: as it is now, or as it was before its deletion.

import type { Context } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import type { Uploads } from '../../kernel/files/multipart.ts'
import type { Resource } from '../../kernel/resource/define-resource.ts'
import type { Snapshot } from '../../kernel/write/events.ts'
import { activities } from '../activities/resource.ts'
import { leads } from '../leads/resource.ts'
import { persons } from '../persons/resource.ts'
import { quotes } from '../quotes/resource.ts'
import type { Action } from './actions.ts'
import type { Entity } from './comparable-fields.ts'

export interface ActionSubject {
  entity: Entity
  id: number
  /** As it is now, or was before its deletion. */
  record: Snapshot
  isGone: boolean
}

/** The event and the position of the action in its run, by which an effect is made only once. */
export interface ActionOrigin {
  eventId: number
  runId: number
  index: number
  /** The user whose rights the run has. */
  userId: number
}

export type ActionResult = Record<string, unknown>

/** What an action does. `act` and `describe` refuse with a Problem whose sentence users see. */
export interface ActionEffect {
  act(
    ctx: Context,
    about: ActionSubject,
    action: Action,
    cause: ActionOrigin,
    soFar: ActionResult | null,
  ): Promise<ActionResult>
  /**
   * For actions on many records: whether `act` has done only a part. Then the rest follows `soFar`
   * in the next transaction.
   */
  isPart?: (ctx: Context, about: ActionSubject, result: ActionResult) => Promise<boolean>
  describe(ctx: Context, about: ActionSubject, action: Action): Promise<string>
  /** Files that `act` needs, created before its transaction. */
  uploads?: (ctx: Context, about: ActionSubject) => Promise<Uploads | null>
}

export const workflowResources: Record<
  Entity,
  Pick<
    Resource<unknown, never>,
    'noun' | 'getOperation' | 'listOperation' | 'events' | 'getMany' | 'visibleIds' | 'exists' | 'query'
  >
> = { leads, persons, quotes, activities }

export const actionRefused = (sentence: string): Problem => new Problem('state_conflict', sentence)

/** The record as it is now, or as `last` has it when it is deleted. */
export async function loadActionSubject(
  ctx: Context,
  entity: Entity,
  id: number,
  last: Snapshot,
): Promise<ActionSubject> {
  const now = (await workflowResources[entity].getMany(ctx, [id])).get(id) as Snapshot | undefined
  return { entity, id, record: now ?? last, isGone: now === undefined }
}

/** Throws for a deleted record, which cannot be changed. */
export function requireRecord({ entity, isGone }: ActionSubject): void {
  if (isGone) throw actionRefused(`The ${workflowResources[entity].noun} has been deleted.`)
}

/** The id of the person that the record is or belongs to. Throws when there is none. */
export function personIdOf({ entity, id, record }: ActionSubject): number {
  const personId = entity === 'persons' ? id : record.person_id
  if (typeof personId !== 'number') throw actionRefused(`The ${workflowResources[entity].noun} has no person.`)
  return personId
}
