// The records that the conditions and actions of a workflow name.
import type { Context } from '../../kernel/context.ts'
import type { NamedRecord, StoredReference } from '../../kernel/history/stored-references.ts'
import { referencesInValue, referencesToAttribute, withId } from '../attributes/references.ts'
import { referencesInText } from '../email-templates/placeholder-references.ts'
import { type Action, targetOf } from './actions.ts'
import { type ComparableField, comparableFields, type Entity } from './comparable-fields.ts'
import type { Condition } from './conditions.ts'
import { type Timing, timingField } from './timing.ts'
import { attributeToSet, readUpdateValue } from './update-values.ts'

export async function referencesOfWorkflow(
  ctx: Context,
  entity: Entity,
  {
    conditions,
    actions,
    timing,
  }: { conditions: readonly Condition[]; actions: readonly Action[]; timing: Timing | null },
): Promise<StoredReference[]> {
  const fields = await comparableFields(ctx, entity)
  const found = conditions.flatMap((condition) => referencesOfCondition(fields, condition))
  for (const action of actions) found.push(...(await referencesOfAction(ctx, action)))
  const attribute = timing && (await timingField(ctx, entity, timing.field))?.attribute
  return attribute ? [...found, ...referencesToAttribute('timing', attribute)] : found
}

/** Returns the conditions and actions with the record `by` in the place of `named`. */
export async function replacingInWorkflow(
  ctx: Context,
  entity: Entity,
  { conditions, actions }: { conditions: readonly Condition[]; actions: readonly Action[] },
  { named, by }: { named: NamedRecord; by: number },
) {
  const fields = await comparableFields(ctx, entity)
  const names = (found: readonly StoredReference[]): boolean =>
    found.some((each) => each.entity === named.entity && each.id === named.id)
  const replaced = <Rule extends { value: unknown }>(rule: Rule): Rule => ({
    ...rule,
    value: withId(rule.value, named.id, by),
  })
  const key = named.entity === 'users' ? 'user_id' : 'group_id'
  const inDetail = <Detail extends object>(detail: Detail): Detail => ({ ...detail, [key]: by })
  const replacedIn = (action: Action): Action => {
    if (action.activity) return { ...action, activity: inDetail(action.activity) }
    return action.notice ? { ...action, notice: inDetail(action.notice) } : replaced(action)
  }
  const changed: Action[] = []
  for (const action of actions) changed.push(names(await referencesOfAction(ctx, action)) ? replacedIn(action) : action)
  return {
    conditions: conditions.map((each) => (names(referencesOfCondition(fields, each)) ? replaced(each) : each)),
    actions: changed,
  }
}

function referencesOfCondition(
  fields: ReadonlyMap<string, ComparableField>,
  { attribute: code, value }: Condition,
): StoredReference[] {
  const field = 'conditions'
  const { attribute, lookup, tags } = fields.get(code) ?? {}
  if (attribute) return [...referencesToAttribute(field, attribute), ...referencesInValue(field, attribute, value)]
  const entity = tags ? 'tags' : lookup
  return entity === undefined ? [] : idsIn(value).map((id) => ({ field, entity, id }))
}

const idsIn = (value: unknown): number[] =>
  ([value].flat() as unknown[]).filter((id): id is number => typeof id === 'number')

/** The users and groups, and the attributes in the texts, of an action with details. */
async function referencesOfDetail(ctx: Context, { activity, notice }: Action): Promise<StoredReference[]> {
  const field = 'actions'
  const { user_id } = activity ?? notice ?? {}
  const texts = [activity?.title, activity?.comment, notice?.subject, notice?.text]
  return [
    ...idsIn(user_id).map((id) => ({ field, entity: 'users', id })),
    ...idsIn(notice?.group_id).map((id) => ({ field, entity: 'groups', id })),
    ...(await referencesInText(ctx, field, texts.join('\n'))),
  ]
}

async function referencesOfAction(ctx: Context, action: Action): Promise<StoredReference[]> {
  const { id, attribute: code, value } = action
  const field = 'actions'
  if (action.activity || action.notice) return referencesOfDetail(ctx, action)
  const target = targetOf[id]
  if (target !== undefined) {
    const attribute = await attributeToSet(ctx, target, code)
    if (!attribute) return []
    const stored = value === null ? null : readUpdateValue(ctx, target, attribute, value).value
    return [...referencesToAttribute(field, attribute), ...referencesInValue(field, attribute, stored)]
  }
  if (id === 'add_note_as_activity') return referencesInText(ctx, field, String(value))
  if (id === 'add_tag') return []
  const entity = id === 'trigger_webhook' ? 'webhooks' : 'email-templates'
  return idsIn(value).map((each) => ({ field, entity, id: each }))
}
