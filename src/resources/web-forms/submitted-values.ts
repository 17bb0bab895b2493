// Converts submitted values to API values. HTML forms send every value as text, and an empty field
// as an empty text.
import { flagIn } from '../../contract/input/flags.ts'
import { booleans, isJsonObject } from '../../contract/input/normalize.ts'
import { decimalSeparatorOf, readNumber } from '../../texts/numbers.ts'
import type { Attribute } from '../attributes/attribute-set.ts'

/** Stands for a text that is not a number in the language of the form. */
export const unreadNumber = Symbol('unreadNumber')

/** Returns a number as visitors write it in this locale, such as `1.234,50`. */
export const exampleNumber = (locale: string): string =>
  new Intl.NumberFormat(locale, { minimumFractionDigits: 2, numberingSystem: 'latn' }).format(1234.5)

/**
 * Returns whether the value contains nothing but empty values, at every depth. A `label` does not
 * count as content.
 */
export function isBlank(value: unknown): boolean {
  if (value === undefined || value === null) return true
  if (typeof value === 'string') return value.trim() === ''
  if (Array.isArray(value)) return value.every(isBlank)
  if (!isJsonObject(value)) return false
  return Object.entries(value).every(([key, each]) => key === 'label' || isBlank(each))
}

/**
 * Returns the value in the form that the API expects; undefined when it is empty. A text is a
 * number in the language of the form, or `unreadNumber`. Any other value that cannot be converted
 * is returned unchanged, so that validation refuses it.
 */
export function readFieldValue({ type }: Pick<Attribute, 'type'>, sent: unknown, locale: string): unknown {
  if (type === 'boolean') return readTick(sent)
  if (isBlank(sent)) return undefined
  if ((type === 'number' || type === 'price') && typeof sent === 'string')
    return readNumber(sent, decimalSeparatorOf(locale)) ?? unreadNumber
  if (type === 'select' || type === 'lookup') return idIn(sent)
  if (type === 'multiselect' || type === 'checkbox')
    return [sent]
      .flat()
      .filter((each) => !isBlank(each))
      .map(idIn)
  return sent
}

/**
 * Returns whether a checkbox is ticked. Browsers do not send one that is not, so pages may send a
 * hidden field of the same name before it: the last value counts.
 */
function readTick(sent: unknown): unknown {
  const value = Array.isArray(sent) ? sent.at(-1) : sent
  if (isBlank(value)) return false
  return (typeof value === 'string' ? flagIn(value) : booleans.get(value)) ?? value
}

const idIn = (value: unknown): unknown =>
  typeof value === 'string' && /^\s*[1-9]\d{0,14}\s*$/.test(value) ? Number(value) : value
