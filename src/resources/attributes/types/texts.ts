// The types `text`, `textarea` and `url`.
import type { OpenSchema } from '../../../contract/input/open-schema.ts'
import { fold } from '../../../kernel/values/format.ts'
import type { Attribute } from '../attribute-set.ts'
import { anyOf, foldedAt, type StoreContext, type ValueType } from './value-type.ts'

const validations: Record<NonNullable<Attribute['validation']>, OpenSchema> = {
  numeric: { pattern: '^[+-]?\\d+(\\.\\d+)?$' },
  decimal: { pattern: '^\\d{1,11}(\\.\\d{1,4})?$' },
  email: { 'x-value': 'email', pattern: '^[^\\s@]+@[^\\s@]+$' },
  url: { pattern: '^[Hh][Tt][Tt][Pp][Ss]?://\\S+$' },
}

const examples: Record<NonNullable<Attribute['validation']>, string> = {
  numeric: '42',
  decimal: '42.5',
  email: 'ada@example.com',
  url: 'https://example.com',
}

const line = ({ validation }: Attribute): OpenSchema => ({
  type: 'string',
  'x-line': true,
  maxLength: 255,
  ...(validation && validations[validation]),
})

/**
 * Refuses malformed URLs. The schema has a pattern that clients can check, but the pattern also
 * accepts some malformed URLs.
 */
function store(value: unknown, { validation, refuse }: StoreContext): unknown {
  if (validation === 'url' && !URL.canParse(String(value))) refuse('', 'Must be an absolute web address.')
  return value
}

const filtered: Pick<ValueType, 'read' | 'takes' | 'matches'> = {
  read: fold,
  takes: 'texts',
  matches: anyOf(foldedAt),
}

export const textType: ValueType = {
  input: line,
  output: () => ({ type: 'string' }),
  example: ({ validation }) => (validation ? examples[validation] : 'Some words'),
  store,
  keys: (stored) => [{ key: fold(String(stored)), at: '' }],
  ...filtered,
  sorts: foldedAt,
  indexed: foldedAt,
}

const maxUrlLength = 2048

export const url: ValueType = {
  ...textType,
  input: () => ({ type: 'string', 'x-line': true, maxLength: maxUrlLength, ...validations.url }),
  example: () => examples.url,
  store: (value, storing) => store(value, { ...storing, validation: 'url' }),
}

export const textareaType: ValueType = {
  input: () => ({ type: 'string', maxLength: 65_535 }),
  output: () => ({ type: 'string' }),
  example: () => 'Some lines of text',
  ...filtered,
}
