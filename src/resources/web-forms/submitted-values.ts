// What a field of a form sends, as a value of its attribute: forms have texts only, and leave empty what nobody filled in.
import type { Attribute } from '../attributes/set.ts'

type Json = Record<string, unknown>

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)

/** Whether there is nothing in it, however deep; a label alone says nothing of a contact point. */
export function isBlank(value: unknown): boolean {
  if (value === undefined || value === null) return true
  if (typeof value === 'string') return value.trim() === ''
  if (Array.isArray(value)) return value.every(isBlank)
  if (!isObject(value)) return false
  return Object.entries(value).every(([key, each]) => key === 'label' || isBlank(each))
}

/** The value as the API takes it; undefined for nothing. What cannot be read stays, and is refused. */
export function readFieldValue({ type }: Pick<Attribute, 'type'>, sent: unknown): unknown {
  // A box that is not ticked is not sent.
  if (type === 'boolean') return isBlank(sent) ? false : sent
  if (isBlank(sent)) return undefined
  if (type === 'select' || type === 'lookup') return idIn(sent)
  if (type === 'multiselect' || type === 'checkbox')
    return [sent]
      .flat()
      .filter((each) => !isBlank(each))
      .map(idIn)
  return sent
}

const idIn = (value: unknown): unknown =>
  typeof value === 'string' && /^\s*[1-9]\d{0,14}\s*$/.test(value) ? Number(value) : value
