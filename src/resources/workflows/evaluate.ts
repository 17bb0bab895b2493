// Evaluates the conditions of a workflow for a record snapshot from the event log.
// The result depends only on the arguments, which include the day of {{today}} and the time zone.
// Null equals only null and has no order.

import { digitsOf } from '../../../db/schema/search-folding.ts'
import { canonicalDate, canonicalTime, isDateOnly } from '../../contract/input/formats.ts'
import { fold } from '../../kernel/values/format.ts'
import type { Snapshot } from '../../kernel/write/events.ts'
import { type ComparableField, operatorsByKind } from './comparable-fields.ts'
import { type Condition, UnanswerableCondition } from './conditions.ts'
import { compareDecimals } from './decimals.ts'
import { resolveMoment } from './relative-dates.ts'

export interface Evaluation {
  matches: boolean
  /** The indexes of the conditions that are true. */
  held: number[]
}

/** The input of an evaluation besides the conditions and the record. */
export interface EvaluationInput {
  subjects: ReadonlyMap<string, ComparableField>
  /** The time whose day replaces {{today}}. */
  at: Date
  zone: string
  /**
   * The record before the event; null when the record did not exist or its earlier state is
   * unknown.
   */
  before: Snapshot | null
}

/**
 * Returns whether the conditions match, and the indexes of the true conditions. Evaluates every
 * condition, because a run stores all true conditions. Throws UnanswerableCondition when a
 * condition cannot be evaluated.
 */
export function evaluate(
  { condition_type, conditions }: { condition_type: string; conditions: readonly Condition[] },
  snapshot: Snapshot,
  setting: EvaluationInput,
): Evaluation {
  const answers = conditions.map((condition) => holds(condition, snapshot, setting))
  const isMatch =
    condition_type === 'or' ? answers.length === 0 || answers.some(Boolean) : answers.every((answer) => answer)
  return { matches: isMatch, held: answers.flatMap((answer, index) => (answer ? [index] : [])) }
}

function holds(condition: Condition, snapshot: Snapshot, setting: EvaluationInput): boolean {
  const { attribute: code, operator, value: wanted } = condition
  const subject = setting.subjects.get(code)
  if (!subject) throw new UnanswerableCondition(`The attribute ${code} of a condition no longer exists.`)
  if (!operatorsByKind[subject.kind].includes(operator))
    throw new UnanswerableCondition(`${code} has become another attribute, which cannot be compared with ${operator}.`)
  if (operator === 'changed_to') {
    const same = { ...condition, operator: subject.kind === 'list' ? '{}' : '==' } as Condition
    return holds(same, snapshot, setting) && (setting.before === null || !holds(same, setting.before, setting))
  }
  const actual = subject.derived?.(setting.before, snapshot) ?? actualValue(subject.key ?? code, subject, snapshot)
  if (operator === '{}' || operator === '!{}') return contains(subject, actual, wanted) === (operator === '{}')
  if (actual === null || wanted === null) {
    const isSame = actual === null && wanted === null
    return operator === '==' ? isSame : operator === '!=' && !isSame
  }
  if (operator === '==' || operator === '!=')
    return equals(code, subject, actual, wanted, setting) === (operator === '==')
  return inOrder(operator, compare(code, subject, actual, wanted, setting))
}

/** Returns the value of a field in the snapshot; null when the record has no value. */
function actualValue(code: string, { attribute, tags }: ComparableField, snapshot: Snapshot): unknown {
  if (tags) return ((snapshot.tags ?? []) as { id: number }[]).map(({ id }) => id)
  if (!attribute?.isOwn) return snapshot[code] ?? null
  return (snapshot.custom_attributes as Snapshot | undefined)?.[code] ?? null
}

/**
 * Returns whether `actual` contains `wanted`. A text contains another text. A list or choice
 * contains `wanted` when it has at least one of the wanted values. Null contains nothing and is
 * contained in nothing.
 */
function contains({ kind, attribute }: ComparableField, actual: unknown, wanted: unknown): boolean {
  if (actual === null || wanted === null) return false
  if (kind === 'text') return fold(String(actual)).includes(fold(String(wanted)))
  const keyOf = attribute?.type === 'email' ? foldedValue : attribute?.type === 'phone' ? phoneValue : plain
  const present = new Set([actual].flat().map(keyOf))
  return [wanted].flat().some((each) => present.has(keyOf(each)))
}

const plain = (value: unknown): unknown => value
const pointText = (value: unknown): string =>
  String(typeof value === 'object' && value !== null ? (value as { value: string }).value : value)
const foldedValue = (value: unknown): string => fold(pointText(value))
const phoneValue = (value: unknown): string => digitsOf(pointText(value))

function equals(
  code: string,
  subject: ComparableField,
  actual: unknown,
  wanted: unknown,
  setting: EvaluationInput,
): boolean {
  if (subject.kind === 'choice' || subject.kind === 'boolean') return [wanted].flat().includes(actual)
  if (subject.kind === 'text') return fold(String(actual)) === fold(String(wanted))
  return compare(code, subject, actual, wanted, setting) === 0
}

const inOrder = (operator: string, order: number | undefined): boolean => {
  if (order === undefined) return false
  if (operator === '>') return order > 0
  if (operator === '<') return order < 0
  return operator === '>=' ? order >= 0 : order <= 0
}

/**
 * Returns a negative number, zero or a positive number when `actual` is less than, equal to or
 * greater than `wanted`. Returns undefined when the value of the record cannot be compared.
 */
function compare(
  code: string,
  { kind }: ComparableField,
  actual: unknown,
  wanted: unknown,
  { at, zone }: EvaluationInput,
): number | undefined {
  if (kind === 'number') return compareDecimals(actual, wanted)
  const expected = resolveMoment(String(wanted), at, zone)
  if (expected === undefined)
    throw new UnanswerableCondition(`A condition compares ${code} with ${wanted}, which is not a date.`)
  // A timestamp and a date are compared as two dates.
  const isDay = kind === 'date' || isDateOnly(expected)
  const [own, other] = isDay
    ? [canonicalDate(String(actual), zone), canonicalDate(expected, zone)]
    : [canonicalTime(String(actual), zone), expected]
  if (own === undefined || other === undefined) return undefined
  return own < other ? -1 : own > other ? 1 : 0
}
