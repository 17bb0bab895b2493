// Rules for the conditions of a workflow: the attribute exists, its type supports the
// operator, and the value can be compared. Stored conditions are not checked again.
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import type { ValidationErrors } from '../../kernel/errors.ts'
import { findChoosable, findLabels } from '../attributes/lookups.ts'
import { type ComparableField, comparableFields, type Entity, operatorsByKind } from './comparable-fields.ts'
import { resolveMoment } from './relative-dates.ts'

export type Condition = Schema<'WorkflowCondition'>
type Input = Schema<'WorkflowConditionInput'>

const maxTextLength = 1000
const maxValues = 100

/**
 * The error for a condition that can no longer be evaluated, for example because its attribute is
 * deleted. Users see the message.
 */
export class UnanswerableCondition extends Error {}

export const conditionOf = ({ attribute, operator, value }: Input): Condition => ({
  attribute,
  operator,
  value: value ?? null,
})

/**
 * Adds a validation error for each invalid condition. The conditions in `known` are already stored
 * and are not checked again.
 */
export async function checkConditions(
  ctx: Context,
  entity: Entity,
  conditions: readonly Condition[],
  known: readonly Condition[],
  errors: ValidationErrors,
): Promise<void> {
  const accepted = new Set(known.map((each) => JSON.stringify(each)))
  const subjects = await comparableFields(ctx, entity)
  for (const [index, condition] of conditions.entries()) {
    if (accepted.has(JSON.stringify(condition))) continue
    const below = errors.nested(`conditions.${index}`)
    const subject = subjects.get(condition.attribute)
    if (!subject) {
      below.invalid('attribute', `Records of ${entity} have no attribute ${condition.attribute} to compare.`)
      continue
    }
    const operators = operatorsByKind[subject.kind]
    if (!operators.includes(condition.operator))
      below.invalid('operator', `Must be one of ${operators.join(' ')} for this attribute.`)
    else await checkValue(ctx, subject, condition, below)
  }
}

async function checkValue(
  ctx: Context,
  subject: ComparableField,
  { operator, value }: Condition,
  errors: ValidationErrors,
) {
  const refuse = (sentence: string): void => errors.invalid('value', sentence)
  const isOrdering = ['>=', '<=', '>', '<'].includes(operator)
  if (value === null) {
    // Null equals only null. It is neither greater nor less than a value, and it contains nothing.
    if (isOrdering || operator.includes('{}')) refuse('The field is required for this operator.')
    return
  }
  const { zone, values } = { zone: ctx.services.config.timezone, values: [value].flat() as unknown[] }
  if (values.length > maxValues) return refuse(`Must not have more than ${maxValues} values.`)
  switch (subject.kind) {
    case 'number':
      if (!isNumber(value)) refuse('Must be a number.')
      return
    case 'date':
    case 'datetime':
      if (typeof value !== 'string' || resolveMoment(value, ctx.time, zone) === undefined)
        refuse(
          `Must be a date, ${subject.kind === 'date' ? '' : 'a timestamp, '}{{today}}, {{today+N}} or {{today-N}}.`,
        )
      return
    case 'text':
      if (typeof value !== 'string' || value.length > maxTextLength)
        refuse(`Must be a string of at most ${maxTextLength} characters.`)
      return
    case 'boolean':
      if (values.length === 0 || !values.every((each) => typeof each === 'boolean')) refuse('Must be true or false.')
      return
    default:
      return checkChoices(ctx, subject, values, refuse)
  }
}

const isNumber = (value: unknown): boolean =>
  typeof value === 'number' || (typeof value === 'string' && /^[+-]?\d{1,15}(\.\d{1,4})?$/.test(value.trim()))

/**
 * Requires that every value is an existing choice. Depending on the field, a choice is an option of
 * the attribute, a record, or a tag. Addresses and phone numbers may be any text.
 */
async function checkChoices(
  ctx: Context,
  subject: ComparableField,
  values: readonly unknown[],
  refuse: (sentence: string) => void,
) {
  const { attribute, choices, lookup = attribute?.lookup ?? null, tags } = subject
  if (values.length === 0) return refuse('Name at least one value.')
  if (choices) {
    if (!values.every((each) => (choices as unknown[]).includes(each))) refuse(`Must be any of ${choices.join(', ')}.`)
    return
  }
  if (attribute?.type === 'email' || attribute?.type === 'phone') {
    if (!values.every((each) => typeof each === 'string' && each.length <= maxTextLength))
      refuse('Must be one or more strings.')
    return
  }
  if (!values.every((each) => typeof each === 'number' && Number.isSafeInteger(each) && each > 0))
    return refuse('Must be one or more ids.')
  const ids = values as number[]
  const present = tags ? await tagIds(ctx, ids) : await known(ctx, attribute, lookup, ids)
  const missing = ids.filter((id) => !present.has(id))
  if (missing.length > 0) refuse(`No choice has id ${missing.join(', ')}.`)
}

async function known(
  ctx: Context,
  attribute: ComparableField['attribute'],
  lookup: Parameters<typeof findChoosable>[1] | null,
  ids: readonly number[],
): Promise<ReadonlySet<number>> {
  if (lookup !== null) return findChoosable(ctx, lookup, ids)
  return new Set(attribute?.options.map(({ id }) => id) ?? [])
}

/**
 * Throws UnanswerableCondition when a condition excludes a record, tag or option that was deleted.
 * Nothing has a deleted choice, so such a condition would match every record.
 */
export async function refuseDeadExclusions(
  ctx: Context,
  conditions: readonly Condition[],
  subjects: ReadonlyMap<string, ComparableField>,
): Promise<void> {
  for (const { attribute: code, operator, value } of conditions) {
    const subject = subjects.get(code)
    if (!subject || (operator !== '!=' && operator !== '!{}')) continue
    const ids = [value].flat().filter((each): each is number => typeof each === 'number')
    const present = await existing(ctx, subject, ids)
    const dead = present === null ? [] : ids.filter((id) => !present.has(id))
    if (dead.length > 0)
      throw new UnanswerableCondition(`A condition on ${code} excludes ${dead.join(', ')}, which was deleted.`)
  }
}

/** Returns the subset of `ids` that exist; null for a field whose values are not ids. */
async function existing(
  ctx: Context,
  { attribute, choices, lookup: builtIn, tags }: ComparableField,
  ids: readonly number[],
): Promise<Pick<ReadonlySet<number>, 'has'> | null> {
  const lookup = builtIn ?? attribute?.lookup ?? null
  if (choices || ids.length === 0) return null
  if (tags) return tagIds(ctx, ids)
  if (lookup !== null) return findLabels(ctx, lookup, ids)
  return attribute && ['select', 'multiselect', 'checkbox'].includes(attribute.type)
    ? new Set(attribute.options.map(({ id }) => id))
    : null
}

async function tagIds(ctx: Context, ids: readonly number[]): Promise<ReadonlySet<number>> {
  const rows = await ctx.db
    .selectFrom('tags')
    .select('id')
    .where('id', 'in', [...ids])
    .execute()
  return new Set(rows.map(({ id }) => id))
}
