// Rules for the actions of a workflow: the actions allowed for each entity, and the
// values allowed for each action. An update action has an attribute code, and a value that the API
// accepts for this attribute.
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import type { ValidationErrors } from '../../kernel/errors.ts'
import { checkReference } from '../../kernel/resource/references.ts'
import { valueTypeOf } from '../attributes/types.ts'
import { checkNamedRecords, toStored } from '../attributes/validate-values.ts'
import { findUnknownPlaceholders } from '../email-templates/unknown-placeholders.ts'
import { groups } from '../groups/resource.ts'
import { users } from '../users/resource.ts'
import type { Entity } from './comparable-fields.ts'
import { attributeToSet, readUpdateValue, type Target } from './update-values.ts'

export type Action = Schema<'WorkflowAction'>
type Input = Schema<'WorkflowActionInput'>
type Id = Action['id']

const entitiesOf: Record<Id, readonly Entity[]> = {
  update_lead: ['leads'],
  update_person: ['leads', 'persons', 'quotes'],
  update_quote: ['quotes'],
  update_related_leads: ['persons', 'activities', 'quotes'],
  send_email_to_person: ['leads', 'persons', 'quotes'],
  send_email_to_sales_owner: ['leads', 'quotes', 'activities'],
  send_email_to_participants: ['activities'],
  add_tag: ['leads', 'persons', 'quotes'],
  add_note_as_activity: ['leads', 'persons', 'quotes'],
  create_activity: ['leads', 'persons', 'quotes'],
  notify: ['leads', 'activities', 'persons', 'quotes'],
  trigger_webhook: ['leads', 'activities', 'persons', 'quotes'],
}

/** The entity whose attribute each update action sets. Other actions have no target. */
export const targetOf: Partial<Record<Id, Target>> = {
  update_lead: 'leads',
  update_related_leads: 'leads',
  update_person: 'persons',
  update_quote: 'quotes',
}

/** The attributes of a quote that the server computes from its items. Workflows cannot set them. */
const computed = new Set(['discount_amount', 'tax_amount', 'subtotal', 'grand_total'])
export const maxLength = { tag: 50, note: 65535 }

export const actionOf = ({ id, attribute, value, only_if_empty, activity, notice }: Input): Action => ({
  id,
  attribute: attribute ?? null,
  value: value ?? null,
  ...(only_if_empty && { only_if_empty }),
  ...(activity && {
    activity: {
      type: activity.type,
      title: activity.title ?? null,
      comment: activity.comment ?? null,
      due_in_days: activity.due_in_days ?? 0,
      user_id: (activity.user_id ?? null) as number | null,
    },
  }),
  ...(notice && {
    notice: {
      user_id: (notice.user_id ?? null) as number | null,
      group_id: (notice.group_id ?? null) as number | null,
      subject: notice.subject,
      text: notice.text,
    },
  }),
})

/** The property with the details of an action that has no value. */
const detailOf = { create_activity: 'activity', notify: 'notice' } as const

/**
 * Adds a validation error for each invalid action. The actions in `known` are already stored and
 * are not checked again.
 */
export async function checkActions(
  ctx: Context,
  entity: Entity,
  actions: readonly Action[],
  known: readonly Action[],
  errors: ValidationErrors,
): Promise<void> {
  const accepted = new Set(known.map((each) => JSON.stringify(each)))
  for (const [index, action] of actions.entries()) {
    if (accepted.has(JSON.stringify(action))) continue
    const below = errors.nested(`actions.${index}`)
    if (!entitiesOf[action.id].includes(entity)) {
      below.invalid('id', `This action does not exist for ${entity}.`)
      continue
    }
    const target = targetOf[action.id]
    if (!target && action.attribute !== null) below.invalid('attribute', 'Only an update action takes an attribute.')
    if (!target && action.only_if_empty) below.invalid('only_if_empty', 'Only an update action takes this.')
    if (await checkDetails(ctx, entity, action, below)) continue
    if (target) await checkUpdate(ctx, target, action, below)
    else await checkValue(ctx, entity, action, below)
  }
}

/** Checks the details of the action. Returns whether it is an action that has details. */
async function checkDetails(ctx: Context, entity: Entity, action: Action, errors: ValidationErrors): Promise<boolean> {
  for (const [id, detail] of Object.entries(detailOf) as [Id, 'activity' | 'notice'][]) {
    const before = errors.size
    if (action[detail]) await checkDetail(ctx, entity, { [detail]: action[detail] }, errors)
    if (action.id === id && !action[detail]) errors.invalid(detail, 'The field is required.')
    else if (action.id !== id && action[detail] && errors.size === before)
      errors.invalid(detail, `Only the action ${id} takes this.`)
  }
  if (!(action.id in detailOf)) return false
  if (action.value !== null) errors.invalid('value', 'This action takes no value.')
  return true
}

async function checkDetail(
  ctx: Context,
  entity: Entity,
  { activity, notice }: Pick<Action, 'activity' | 'notice'>,
  errors: ValidationErrors,
): Promise<void> {
  const below = errors.nested(activity ? 'activity' : 'notice')
  const { type, title, comment } = activity ?? {}
  if (type === 'file') below.invalid('type', 'A workflow cannot create a file.')
  if (type === 'note' && !comment?.trim()) below.invalid('comment', 'The field is required.')
  if (type !== undefined && type !== 'note' && !title?.trim()) below.invalid('title', 'The field is required.')
  const { user_id = null } = activity ?? notice ?? {}
  const group_id = notice?.group_id ?? null
  if (user_id !== null) await checkReference({ ctx, errors: below }, 'user_id', user_id, users)
  if (group_id !== null) await checkReference({ ctx, errors: below }, 'group_id', group_id, groups)
  if (notice?.user_id && group_id !== null && !below.any) below.invalid('group_id', 'Name either a user or a group.')
  const texts = { title, comment, subject: notice?.subject, text: notice?.text }
  for (const [name, text] of Object.entries(texts))
    for (const sentence of text ? await findUnknownPlaceholders(ctx, text, { entity }) : [])
      below.invalid(name, sentence)
}

async function checkUpdate(
  ctx: Context,
  target: Target,
  { attribute: code, value }: Action,
  errors: ValidationErrors,
): Promise<void> {
  const attribute = await attributeToSet(ctx, target, code)
  const type = attribute && valueTypeOf(attribute)
  if (!attribute || !type || (target === 'quotes' && !attribute.isOwn && computed.has(attribute.code))) {
    errors.invalid('attribute', `${target} have no attribute ${code ?? ''} to set.`)
    return
  }
  if (value === null) {
    if (attribute.isRequired) errors.invalid('value', 'The field is required.')
    return
  }
  const { value: read, errors: refused } = readUpdateValue(ctx, target, attribute, value)
  for (const [field, sentences] of Object.entries(refused))
    for (const sentence of sentences) errors.invalid(field, sentence)
  if (Object.keys(refused).length > 0) return
  const stored = toStored(attribute, type, read, null, 'value', errors)
  await checkNamedRecords({ ctx, errors }, attribute, 'value', stored, null)
}

async function checkValue(
  ctx: Context,
  entity: Entity,
  { id, value }: Action,
  errors: ValidationErrors,
): Promise<void> {
  const isText = (most: number): boolean => typeof value === 'string' && value.trim() !== '' && value.length <= most
  if (id === 'add_tag') {
    if (!isText(maxLength.tag))
      errors.invalid('value', `Must be the name of a tag, of at most ${maxLength.tag} characters.`)
  } else if (id === 'add_note_as_activity') {
    if (!isText(maxLength.note)) errors.invalid('value', `Must be a text of at most ${maxLength.note} characters.`)
    else
      for (const sentence of await findUnknownPlaceholders(ctx, String(value), { entity }))
        errors.invalid('value', sentence)
  } else {
    const table = id === 'trigger_webhook' ? 'webhooks' : 'email_templates'
    const noun = id === 'trigger_webhook' ? 'webhook' : 'e-mail template'
    if (!(await exists(ctx, table, value))) errors.invalid('value', `No ${noun} has id ${JSON.stringify(value)}.`)
    else if (table === 'email_templates') await checkTemplate(ctx, entity, Number(value), errors)
  }
}

/**
 * Adds a validation error for each placeholder of the template that records of the entity cannot
 * fill in.
 */
async function checkTemplate(ctx: Context, entity: Entity, id: number, errors: ValidationErrors): Promise<void> {
  const template = await ctx.db
    .selectFrom('email_templates')
    .select(['subject', 'content'])
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  const sentences = await findUnknownPlaceholders(ctx, `${template.subject}\n${template.content}`, {
    entity,
    more: ['unsubscribe_url'],
  })
  for (const sentence of sentences) errors.invalid('value', `In the template, used for ${entity}: ${sentence}`)
}

async function exists(ctx: Context, table: 'webhooks' | 'email_templates', id: unknown): Promise<boolean> {
  if (typeof id !== 'number' || !Number.isSafeInteger(id)) return false
  return (await ctx.db.selectFrom(table).select('id').where('id', '=', id).executeTakeFirst()) !== undefined
}
