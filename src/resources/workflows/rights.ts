// A workflow acts with the rights of the user who changed it last, as they are at each step (DOMAIN
// chapter 0, row 16). It reads what that user sees and does what that user may do; its events name
// the system as actor (DOMAIN 18.3).
import { operations } from '../../contract/operations.gen.ts'
import type { OperationFact, OperationId } from '../../contract/types.ts'
import { type Context, type CurrentUser, canCall } from '../../kernel/context.ts'
import type { Problem } from '../../kernel/errors.ts'
import { canSeeEvent } from '../events/visible-events.ts'
import { inactiveReason, loadActingUser, requireTokenAbilities } from '../users/acting-user.ts'
import { actionRefused, workflowResources } from './action-subject.ts'
import type { Action } from './actions.ts'
import type { Entity } from './comparable-fields.ts'

/** A context whose user limits what it may do. */
export type ActingContext<C extends Context = Context> = C & { user: CurrentUser }

/** The context of the user. Throws a Problem when the user is deleted or inactive. */
export async function actAsChanger<C extends Context>(ctx: C, userId: number | null): Promise<ActingContext<C>> {
  const user = await loadActingUser(ctx, userId)
  if (!user) throw actionRefused(inactiveReason('workflow'))
  return { ...ctx, user }
}

const attaching = { leads: 'attachLeadTag', persons: 'attachPersonTag', quotes: 'attachQuoteTag' } as const

/** The operations that do the same as the action. */
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
      return ['createActivity']
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

/** These operations and those that the action may need later: a missing tag is created. */
const maxCallsOf = (id: Action['id'], entity: Entity): OperationId[] =>
  id === 'add_tag' ? [...callsOf(id, entity), 'createTag'] : callsOf(id, entity)

/** Throws 403 unless the calling token could itself do what the workflow reads and does. */
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

/** The reason why the API refused an action, as a sentence about the workflow's user. */
export const explainRefusal = (acting: ActingContext | null, error: Problem): Problem =>
  acting && error.code === 'forbidden' && error.more.required ? lacks(acting, String(error.more.required)) : error

/** Null when the user sees the record, or saw it until its deletion; else a sentence. */
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
