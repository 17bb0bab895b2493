// The configuration of workflows. triggers.ts starts runs of workflows, and run.ts
// carries out each run.
import type { Schema } from '../../contract/types.ts'
import { type Context, now } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import { flagField, textField, valueField } from '../../kernel/query/filter.ts'
import { defineResource, type Writing } from '../../kernel/resource/define-resource.ts'
import { uniqueName } from '../../kernel/resource/references.ts'
import { newestEvent } from '../../kernel/write/event-log.ts'
import { changedById } from '../users/acting-user.ts'
import { userRef } from '../users/owner.ts'
import { pictureUrl } from '../users/picture.ts'
import { type Action, actionOf, checkActions } from './actions.ts'
import type { Entity } from './comparable-fields.ts'
import { type Condition, checkConditions, conditionOf } from './conditions.ts'
import { referencesOfWorkflow, replacingInWorkflow } from './references.ts'
import { requireWorkflowAbilities } from './rights.ts'
import { checkTiming, isTimed, type Timing } from './timing.ts'

type Workflow = Schema<'Workflow'>
type Body = Schema<'WorkflowUpdate'>
type Row = {
  id: number
  entity_type: string
  event: string
  conditions: string
  actions: string
  timing: string | null
  is_active: number
}

const maxWorkflows = 200
const triggers: Record<Entity, string> = {
  leads: 'lead.',
  activities: 'activity.',
  persons: 'contacts.person.',
  quotes: 'quote.',
}

const readConditions = (stored: string): Condition[] => (JSON.parse(stored) as Condition[]).map(conditionOf)
const readActions = (stored: string): Action[] => (JSON.parse(stored) as Action[]).map(actionOf)

const rulesIn = ({ conditions, actions, timing }: Pick<Row, 'conditions' | 'actions' | 'timing'>) => ({
  conditions: readConditions(conditions),
  actions: readActions(actions),
  timing: JSON.parse(timing ?? 'null') as Timing | null,
})

/**
 * Returns the conditions and actions to store. Adds a validation error for each invalid condition
 * or action. When the entity changes, stored conditions and actions are checked again.
 */
async function rulesOf(body: Body, { ctx, current, errors }: Writing<Row>) {
  const entity = (body.entity_type ?? current?.entity_type) as Entity
  const event = body.event ?? current?.event ?? ''
  if (!event.startsWith(triggers[entity])) errors.invalid('event', `Is not an event of ${entity}.`)
  const isSame = current?.entity_type === entity
  const stored = current ? rulesIn(current) : { conditions: [], actions: [], timing: null }
  const conditions = body.conditions?.map(conditionOf) ?? stored.conditions
  const actions = body.actions?.map(actionOf) ?? stored.actions
  const timing = body.timing === undefined && isTimed(event) ? stored.timing : (body.timing ?? null)
  await checkTiming(ctx, { entity, event, timing }, errors)
  await checkConditions(ctx, entity, conditions, isSame ? stored.conditions : [], errors)
  await checkActions(ctx, entity, actions, isSame ? stored.actions : [], errors)
  return {
    conditions: JSON.stringify(conditions),
    actions: JSON.stringify(actions),
    timing: timing && JSON.stringify({ field: timing.field, days: timing.days }),
  }
}

export const workflows = defineResource({
  noun: 'workflow',
  table: 'workflows',
  externalIds: { table: 'workflow_external_ids', column: 'workflow_id' },
  operations: {
    list: 'listWorkflows',
    get: 'getWorkflow',
    create: 'createWorkflow',
    update: 'updateWorkflow',
    delete: 'deleteWorkflow',
  },
  rows: (_ctx, db) =>
    db
      .selectFrom('workflows')
      .leftJoin('users', 'users.id', 'workflows.changed_by_id')
      .selectAll('workflows')
      .select(['users.name as user_name', 'users.email as user_email', 'users.image_file_id as user_image']),
  sort: {
    id: 'workflows.id',
    name: 'workflows.name_key',
    sort_order: 'workflows.sort_order',
    created_at: 'workflows.created_at',
  },
  filter: {
    name: textField('workflows.name_key'),
    entity_type: valueField('workflows.entity_type'),
    event: valueField('workflows.event'),
    is_active: flagField('workflows.is_active'),
  },
  search: [{ key: 'workflows.name_key' }, { text: 'workflows.description' }],
  governs: ['entity_type', 'event'],
  withoutColumn: {},
  toRow: async (body: Body, writing) => {
    const { ctx, current } = writing
    const about = { table: 'workflows', entity: 'workflows', noun: 'workflow' } as const
    const rules = await rulesOf(body, writing)
    const isNew = startsOver(body, current) || (current !== null && rules.timing !== current.timing)
    const columns = {
      ...(await uniqueName(writing, about, body.name)),
      description: body.description,
      entity_type: body.entity_type,
      event: body.event,
      condition_type: body.condition_type,
      ...rules,
      is_active: body.is_active === undefined ? undefined : Number(body.is_active),
      run_on_restore: body.run_on_restore === undefined ? undefined : Number(body.run_on_restore),
      sort_order: body.sort_order ?? (current ? undefined : await nextSortOrder(ctx)),
      events_after: isNew ? await newestEvent(ctx) : undefined,
      ...(isNew && { due_after: now(ctx), due_until: now(ctx) }),
    }
    const changer = changedById(ctx, columns, current)
    const entity = body.entity_type ?? current?.entity_type
    if (changer !== undefined && !writing.errors.any)
      requireWorkflowAbilities(ctx, entity as Entity, JSON.parse(columns.actions) as Action[])
    return { columns: { ...columns, changed_by_id: changer } }
  },
  refersTo: (ctx, row) => referencesOfWorkflow(ctx, row.entity_type as Entity, rulesIn(row)),
  replacing: (ctx, row, named, by) => replacingInWorkflow(ctx, row.entity_type as Entity, rulesIn(row), { named, by }),
  toReply: (row, ctx): Workflow => ({
    id: row.id,
    name: row.name,
    description: row.description,
    entity_type: row.entity_type as Workflow['entity_type'],
    event: row.event as Workflow['event'],
    timing: rulesIn(row).timing,
    condition_type: row.condition_type as Workflow['condition_type'],
    conditions: readConditions(row.conditions),
    actions: readActions(row.actions),
    is_active: row.is_active === 1,
    run_on_restore: row.run_on_restore === 1,
    sort_order: row.sort_order,
    changed_by: userRef(row.changed_by_id, row.user_name, row.user_email, pictureUrl(ctx, row.user_image)),
    external_ids: {},
    created_at: row.created_at,
    updated_at: row.updated_at,
    version: row.version,
  }),
})

/**
 * Returns whether the workflow ignores all events up to now: it is new, has just been switched on,
 * or has a new trigger event.
 */
const startsOver = (body: Body, current: Row | null): boolean =>
  !current ||
  (body.is_active === true && current.is_active !== 1) ||
  (body.event !== undefined && body.event !== current.event)

/**
 * Returns a sort order after all existing workflows. Throws 409 when the installation has the
 * maximum number of workflows.
 */
async function nextSortOrder(ctx: Context): Promise<number> {
  const { count, last } = await ctx.db
    .selectFrom('workflows')
    .select((eb) => [eb.fn.countAll<number>().as('count'), eb.fn.max('sort_order').as('last')])
    .executeTakeFirstOrThrow()
  if (Number(count) >= maxWorkflows)
    throw new Problem('state_conflict', `An installation has at most ${maxWorkflows} workflows.`)
  return Number(last ?? 0) + 1
}
