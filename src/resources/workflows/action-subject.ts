// What the actions of a run are about: the record as it is now, or as it was last once it is deleted, and who has to do with it.

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
  /** As it is, or was last before it was deleted. */
  record: Snapshot
  isGone: boolean
}

/** The event and the place among the actions of its workflow: what is made of it is made once. */
export interface ActionOrigin {
  eventId: number
  runId: number
  index: number
  /** With whose rights the run acts. */
  userId: number
}

export type ActionResult = Record<string, unknown>

/** What an action does, and what it says it would do. Both refuse with a Problem whose sentence is for people. */
export interface ActionEffect {
  act(
    ctx: Context,
    about: ActionSubject,
    action: Action,
    cause: ActionOrigin,
    soFar: ActionResult | null,
  ): Promise<ActionResult>
  /** For what may be much: whether `act` has done a part only. Then it goes on behind `soFar`, in a transaction of its own. */
  isPart?: (ctx: Context, about: ActionSubject, result: ActionResult) => Promise<boolean>
  describe(ctx: Context, about: ActionSubject, action: Action): Promise<string>
  /** Files that `act` needs, made before the transaction it runs in. */
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

/** The record now, or as `last` has it. */
export async function loadActionSubject(
  ctx: Context,
  entity: Entity,
  id: number,
  last: Snapshot,
): Promise<ActionSubject> {
  const now = (await workflowResources[entity].getMany(ctx, [id])).get(id) as Snapshot | undefined
  return { entity, id, record: now ?? last, isGone: now === undefined }
}

/** Throws for a record that can take nothing any more. */
export function requireRecord({ entity, isGone }: ActionSubject): void {
  if (isGone) throw actionRefused(`The ${workflowResources[entity].noun} has been deleted.`)
}

/** The person the record is of, or is. Throws when there is none. */
export function personIdOf({ entity, id, record }: ActionSubject): number {
  const personId = entity === 'persons' ? id : record.person_id
  if (typeof personId !== 'number') throw actionRefused(`The ${workflowResources[entity].noun} has no person.`)
  return personId
}
