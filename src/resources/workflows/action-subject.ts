// The record on which the actions of a workflow run act. For a deleted record, this is its state
// before the deletion.

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
  /** The current record, or the record before its deletion. */
  record: Snapshot
  isGone: boolean
  /** Whether the event of the run is the deletion of the record. */
  isDeletion: boolean
}

/**
 * The cause of an action. The event, the run and the index of the action in the run identify its
 * effect, so that a repeated attempt causes no second effect.
 */
export interface ActionOrigin {
  eventId: number
  runId: number
  index: number
  /** The user whose rights the run has. */
  userId: number
}

export type ActionResult = Record<string, unknown>

/**
 * The implementation of an action. `act` and `describe` throw a Problem when the action is not
 * possible; its message is shown to users.
 */
export interface ActionEffect {
  act(
    ctx: Context,
    about: ActionSubject,
    action: Action,
    cause: ActionOrigin,
    soFar: ActionResult | null,
  ): Promise<ActionResult>
  /**
   * Returns whether `act` has processed only some of its records. The next transaction then calls
   * `act` again, with this result as `soFar`. Only actions on many records need this function.
   */
  isPart?: (ctx: Context, about: ActionSubject, result: ActionResult) => Promise<boolean>
  describe(ctx: Context, about: ActionSubject, action: Action): Promise<string>
  /** Creates the files that `act` needs, before the transaction of `act`. */
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

/**
 * Returns the current record. For a deleted record returns `last`, the record as it was before its
 * deletion.
 */
export async function loadActionSubject(
  ctx: Context,
  entity: Entity,
  id: number,
  last: Snapshot,
  isDeletion: boolean,
): Promise<ActionSubject> {
  const now = (await workflowResources[entity].getMany(ctx, [id])).get(id) as Snapshot | undefined
  return { entity, id, record: now ?? last, isGone: now === undefined, isDeletion }
}

/** Throws a Problem when the record is deleted, because it can no longer be changed. */
export function requireRecord({ entity, isGone }: ActionSubject): void {
  if (isGone) throw actionRefused(`The ${workflowResources[entity].noun} has been deleted.`)
}

/**
 * Returns the id of the person that belongs to the record. For a person, returns the id of the
 * record itself. Throws a Problem when there is no person.
 */
export function personIdOf({ entity, id, record }: ActionSubject): number {
  const personId = entity === 'persons' ? id : record.person_id
  if (typeof personId !== 'number') throw actionRefused(`The ${workflowResources[entity].noun} has no person.`)
  return personId
}
