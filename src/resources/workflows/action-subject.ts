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
import type { Entity } from './subjects.ts'

export interface Occasion {
  entity: Entity
  id: number
  /** As it is, or was last before it was deleted. */
  record: Snapshot
  isGone: boolean
}

/** The event and the place among the actions of its workflow: what is made of it is made once. */
export interface Cause {
  eventId: number
  runId: number
  index: number
  /** With whose rights the run acts. */
  userId: number
}

export type Result = Record<string, unknown>

/** What an action does, and what it says it would do. Both refuse with a Problem whose sentence is for people. */
export interface Effect {
  act(ctx: Context, about: Occasion, action: Action, cause: Cause, soFar: Result | null): Promise<Result>
  /** For what may be much: whether `act` has done a part only. Then it goes on behind `soFar`, in a transaction of its own. */
  isPart?: (ctx: Context, about: Occasion, result: Result) => Promise<boolean>
  would(ctx: Context, about: Occasion, action: Action): Promise<string>
  /** Files that `act` needs, made before the transaction it runs in. */
  uploads?: (ctx: Context, about: Occasion) => Promise<Uploads | null>
}

export const resources: Record<
  Entity,
  Pick<
    Resource<unknown, never>,
    'noun' | 'getOperation' | 'listOperation' | 'events' | 'getMany' | 'visibleIds' | 'exists' | 'query'
  >
> = { leads, persons, quotes, activities }

export const refuse = (sentence: string): Problem => new Problem('state_conflict', sentence)

/** The record now, or as `last` has it. */
export async function occasionOf(ctx: Context, entity: Entity, id: number, last: Snapshot): Promise<Occasion> {
  const now = (await resources[entity].getMany(ctx, [id])).get(id) as Snapshot | undefined
  return { entity, id, record: now ?? last, isGone: now === undefined }
}

/** Throws for a record that can take nothing any more. */
export function requireRecord({ entity, isGone }: Occasion): void {
  if (isGone) throw refuse(`The ${resources[entity].noun} has been deleted.`)
}

/** The person the record is of, or is. Throws when there is none. */
export function personIdOf({ entity, id, record }: Occasion): number {
  const personId = entity === 'persons' ? id : record.person_id
  if (typeof personId !== 'number') throw refuse(`The ${resources[entity].noun} has no person.`)
  return personId
}
