// The rights of a workflow: the current rights of the user who last
// changed it. A workflow reads only what this user sees, and does only what this user may do. Its
// events name the system as the actor.
import { operations } from '../../contract/operations.gen.ts'
import type { OperationFact, OperationId } from '../../contract/types.ts'
import { type Context, type CurrentUser, canCall } from '../../kernel/context.ts'
import type { Problem } from '../../kernel/errors.ts'
import { canSeeEvent } from '../events/visible-events.ts'
import { inactiveReason, loadActingUser, requireTokenAbilities } from '../users/acting-user.ts'
import { actionRefused, workflowResources } from './action-subject.ts'
import type { Action } from './actions.ts'
import type { Entity } from './comparable-fields.ts'

/** A context with a user, whose rights limit all operations in this context. */
export type ActingContext<C extends Context = Context> = C & { user: CurrentUser }

/** Returns the context with this user. Throws a Problem when the user is deleted or inactive. */
export async function actAsChanger<C extends Context>(ctx: C, userId: number | null): Promise<ActingContext<C>> {
  const user = await loadActingUser(ctx, userId)
  if (!user) throw actionRefused(inactiveReason('workflow'))
  return { ...ctx, user }
}

const attaching = { leads: 'attachLeadTag', persons: 'attachPersonTag', quotes: 'attachQuoteTag' } as const

/** Returns the API operations that the user must be allowed to call for the action. */
function callsOf(id: Action['id'], entity: Entity): OperationId[] {
  switch (id) {
    case 'update_lead':
    case 'update_related_leads':
      return ['updateLead']
    case 'update_person':
      return ['updatePerson']
    case 'update_quote':
      return ['updateQuote']
    case 'send_email_to_person':
      return ['createEmail', 'getEmailTemplate', 'getPerson']
    case 'send_email_to_sales_owner':
    case 'send_email_to_participants':
      return ['createEmail', 'getEmailTemplate']
    case 'add_tag':
      return entity === 'activities' ? [] : [attaching[entity]]
    case 'add_note_as_activity':
    case 'create_activity':
      return ['createActivity']
    case 'notify':
      return ['createEmail']
    case 'trigger_webhook':
      return ['getWebhook']
  }
}

const lacks = ({ user }: ActingContext, permission: string): Problem =>
  actionRefused(`${user.name}, who changed this workflow last, lacks the permission ${permission}.`)

function requireEach(acting: ActingContext, facts: readonly OperationFact[]): void {
  for (const fact of facts) if (!canCall(acting, fact)) throw lacks(acting, fact.permission ?? '')
}

/** Throws a Problem unless the user may read records of the entity. */
export const requireReading = (acting: ActingContext, entity: Entity): void =>
  requireEach(acting, [workflowResources[entity].listOperation, workflowResources[entity].getOperation])

/**
 * Returns the operations of `callsOf`, and the operations that the action needs only in some cases:
 * `add_tag` may create the tag.
 */
const maxCallsOf = (id: Action['id'], entity: Entity): OperationId[] =>
  id === 'add_tag' ? [...callsOf(id, entity), 'createTag'] : callsOf(id, entity)

/**
 * Throws 403 unless the calling token has the abilities for everything that the workflow reads and
 * does.
 */
export function requireWorkflowAbilities(ctx: Context, entity: Entity, actions: readonly Action[]): void {
  const { listOperation: lists, getOperation: shows } = workflowResources[entity]
  const calls = actions.flatMap(({ id }) => maxCallsOf(id, entity)).map((call): OperationFact => operations[call])
  requireTokenAbilities(ctx, [lists, shows, ...calls])
}

/** Throws a Problem unless the user may carry out the action. */
export const requireAction = (acting: ActingContext, id: Action['id'], entity: Entity): void =>
  requireEach(
    acting,
    callsOf(id, entity).map((call) => operations[call]),
  )

/**
 * Returns the Problem to report for an action that the API refused. For a missing permission, the
 * message names the workflow's user and the permission.
 */
export const explainRefusal = (acting: ActingContext | null, error: Problem): Problem =>
  acting && error.code === 'forbidden' && error.more.required ? lacks(acting, String(error.more.required)) : error

/**
 * Returns null when the user sees the record, or saw the deleted record until its deletion.
 * Otherwise returns the reason as a sentence.
 */
export async function hiddenReason(
  acting: ActingContext,
  entity: Entity,
  id: number,
  eventId: number | null,
): Promise<string | null> {
  const isThere = (await workflowResources[entity].visibleIds(acting, [id])).has(id)
  if (
    isThere ||
    (eventId !== null && !(await workflowResources[entity].exists(acting, id)) && (await canSeeEvent(acting, eventId)))
  )
    return null
  return `${acting.user.name}, who changed this workflow last, does not see this ${workflowResources[entity].noun}.`
}
