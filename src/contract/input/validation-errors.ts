// Converts Ajv's errors to error sentences by field. A sentence never contains the
// value, because it may be a secret.
import type { ErrorObject } from 'ajv'
import type { FieldErrors } from '../output/problems.ts'
import { nearest } from './did-you-mean.ts'
import { habitual, habitualKey, relatedFilter } from './habits.ts'

/**
 * Returns a text such as " Did you mean `title`?", or an empty text when no candidate is similar.
 */
export function didYouMean(word: string, candidates: Iterable<string>): string {
  const found = nearest(word, candidates)
  return found === undefined ? '' : ` Did you mean \`${found}\`?`
}

/** One error sentence about one field. */
export type Finding = readonly [field: string, sentence: string]

/** The maximum number of fields that a reply lists. */
export const maxFields = 100
const maxBytes = 32 * 1024
const maxNameLength = 120

/**
 * Returns the sentences by field for Ajv's errors and for `more`, at most `maxFields` fields and
 * `maxBytes` bytes. `related` is a sentence about filters by fields of related records.
 */
export function fieldErrors(
  findings: readonly ErrorObject[],
  headerNames: readonly string[] = [],
  more: readonly Finding[] = [],
  related = '',
): FieldErrors {
  const errors = new Map<string, string[]>()
  let bytes = 0
  let isFull = false
  const add = (name: string, sentence: string): void => {
    // A key of the body may be an empty text. Its errors are listed under `body`.
    const field = name.length > maxNameLength ? `${name.slice(0, maxNameLength)}…` : name || 'body'
    const list = errors.get(field) ?? []
    if (list.includes(sentence)) return
    const size = Buffer.byteLength(JSON.stringify([field, sentence]))
    isFull ||= (list.length === 0 && errors.size >= maxFields) || bytes + size > maxBytes
    if (isFull) return
    bytes += size
    errors.set(field, [...list, sentence])
  }
  // For a failed branch of `if`, Ajv reports the errors of the branch and an extra error for the
  // `if` itself, which adds nothing.
  const reported = findings.slice(0, maxFindings).filter(({ keyword }) => keyword !== 'if')
  for (const finding of withoutUnions(withoutReferences(withoutChoices(reported, more), more), more))
    if (!isFull) add(fieldName(finding, headerNames), sentenceFor(finding, related))
  for (const [field, sentence] of more) add(field, sentence)
  if (isFull || findings.length > maxFindings)
    errors.set('body', [...(errors.get('body') ?? []), 'More is wrong than is listed here.'])
  return Object.fromEntries(errors)
}

const maxFindings = 1000

interface Choice {
  type?: string
  required?: string[]
}

/**
 * Returns the keys of an "exactly one of these keys" rule, or an empty list for any other error.
 * The contract writes this rule as a oneOf of objects that each require one key.
 */
function choicesOf({ keyword, schema }: ErrorObject): string[] {
  if (keyword !== 'oneOf' || !Array.isArray(schema)) return []
  const isChoice = schema.every(({ type, required }: Choice) => type === 'object' && required?.length === 1)
  return isChoice ? schema.flatMap(({ required }: Choice) => required ?? []) : []
}

/**
 * Reduces the errors of "exactly one of these keys" rules. Keeps the errors of the branch whose key
 * was sent. If no key or several keys were sent, replaces the errors by one error for the first
 * key.
 */
function withoutChoices(findings: readonly ErrorObject[], more: readonly Finding[]): ErrorObject[] {
  let rest = [...findings]
  for (const choice of findings) {
    const keys = choicesOf(choice)
    if (keys.length === 0 || typeof choice.data !== 'object' || choice.data === null) continue
    const sent = keys.flatMap((key, index) => (Object.hasOwn(choice.data as object, key) ? [index] : []))
    const isSaid = keys.some((key) => more.some(([field]) => field === key))
    rest = rest.flatMap((each) => {
      if (each === choice) return sent.length === 1 || isSaid ? [] : [{ ...each, keyword: 'choice', params: { keys } }]
      if (!each.schemaPath.startsWith(`${choice.schemaPath}/`)) return [each]
      const isOfSent = sent.length === 1 && each.schemaPath.startsWith(`${choice.schemaPath}/${sent[0]}/`)
      const isUnknown = each.keyword === 'additionalProperties' && !keys.includes(each.params.additionalProperty)
      return isOfSent || (sent.length !== 1 && isUnknown) ? [each] : []
    })
  }
  return rest
}

/**
 * Reduces the errors of a value in the place of an id (`x-reference`). Each branch but the first,
 * the id, is an object with one required key. Keeps the errors of the branch whose key was sent, or
 * else one error that lists the keys.
 */
function withoutReferences(findings: readonly ErrorObject[], more: readonly Finding[]): ErrorObject[] {
  let rest = [...findings]
  for (const union of findings) {
    const { data, instancePath: at, keyword, parentSchema, schema } = union
    if (keyword !== 'oneOf' || !parentSchema || !('x-reference' in parentSchema)) continue
    const ofReference = rest.filter((each) => each !== union && each.instancePath === at)
    const { examples } = parentSchema
    if (!isObject(data)) {
      // The number may be too small; any other value has the wrong type for each branch.
      if (ofReference.some(({ keyword }) => keyword !== 'type')) continue
      const keys = ofReference.flatMap(({ parentSchema }) => (parentSchema?.required as string[] | undefined) ?? [])
      rest = rest.flatMap((each) => {
        if (each === union) return [{ ...union, keyword: 'reference', params: { keys, examples } }]
        return ofReference.includes(each) ? [] : [each]
      })
      continue
    }
    const missing = ofReference.flatMap(({ keyword, params }) => (keyword === 'required' ? params.missingProperty : []))
    const isSent = missing.length < (schema as unknown[]).length - 1
    const sent = ofReference.filter(
      (each) =>
        each.keyword === 'additionalProperties' &&
        Object.keys(each.parentSchema?.properties ?? {}).some((key) => Object.hasOwn(data, key)),
    )
    const field = `${fieldName(union, [])}.`
    const isTold = isSent || more.some(([name]) => name.startsWith(field))
    rest = rest.flatMap((each) => {
      if (each === union) return isTold ? [] : [{ ...union, keyword: 'reference', params: { keys: missing, examples } }]
      return ofReference.includes(each) && !(isSent && sent.includes(each)) ? [] : [each]
    })
  }
  return rest
}

/**
 * Reduces the errors of a union. When no branch is valid, Ajv reports the union and every branch.
 * Keeps the errors of the branch with the type of the value, or else one error that lists the
 * allowed types.
 */
function withoutUnions(findings: readonly ErrorObject[], more: readonly Finding[]): ErrorObject[] {
  let rest = [...findings]
  for (const union of findings.filter(({ keyword }) => keyword === 'anyOf' || keyword === 'oneOf')) {
    const at = union.instancePath
    const inside = rest.filter((each) => each !== union && `${each.instancePath}/`.startsWith(`${at}/`))
    const types = inside.filter((each) => each.instancePath === at && each.keyword === 'type')
    if (inside.length === 0) continue
    const field = `${fieldName(union, [])}.`
    const isDeeper = more.some(([name]) => name.startsWith(field))
    const isType = inside.length === types.length && !isDeeper
    // A branch of another type also reports its other rules, such as `enum`.
    const otherTypes = new Set(types.map(branchOf))
    const ofOthers = inside.filter((each) => each.instancePath === at && otherTypes.has(branchOf(each)))
    const left = isDeeper || ofOthers.length < inside.length ? ofOthers : types
    const params = { type: [...new Set(types.flatMap(({ params }) => params.type))] }
    rest = rest.flatMap((each) => {
      if (each === union) return isType ? [{ ...union, keyword: 'type', params }] : []
      return left.includes(each) ? [] : [each]
    })
  }
  return rest
}

/** Returns the path of the schema that has the rule. */
const branchOf = ({ schemaPath }: ErrorObject): string => schemaPath.slice(0, schemaPath.lastIndexOf('/'))

function fieldName(finding: ErrorObject, headerNames: readonly string[]): string {
  const path = finding.instancePath
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
  if (finding.keyword === 'choice') path.push(String(finding.params.keys[0]))
  if (finding.keyword === 'required') path.push(String(finding.params.missingProperty))
  if (finding.keyword === 'additionalProperties') path.push(String(finding.params.additionalProperty))
  if (finding.keyword === 'unevaluatedProperties') path.push(String(finding.params.unevaluatedProperty))
  const [place, ...rest] = path
  if (place === 'requestBody') return rest.join('.') || 'body'
  if (place === 'path') return `path.${rest[0] ?? ''}`
  if (place === 'query') return `query.${rest[0] ?? ''}`
  if (place === 'header') return `header.${headerNames.find((name) => name.toLowerCase() === rest[0]) ?? rest[0] ?? ''}`
  return rest.join('.')
}

/** The maximum number of allowed values that an error sentence lists. */
const maxListed = 60

const typeNames: Record<string, string> = {
  string: 'a string',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  null: 'null',
}

/** The error sentences by `format` or `x-value`. */
const formatSentences: Record<string, string> = {
  email: 'Must be an e-mail address.',
  phone: 'Must be a telephone number: at least three digits, and at most 40 characters.',
  date: 'Must be a date such as 2026-03-31.',
  'date-time': 'Must be a timestamp such as 2026-03-01T09:30:00Z.',
  instant: 'Must be a date or timestamp such as 2026-03-31 or 2026-03-01T09:30:00Z.',
  money: 'Must be an amount with at most 4 decimals.',
  decimal: 'Must be a number with at most 4 decimals.',
  url: 'Must be an absolute https URL.',
  country: 'Must be an ISO 3166-1 country code of two letters.',
}

/** The error sentences of keywords whose parameters say nothing to a client. */
const plainSentences: Record<string, string> = {
  required: 'The field is required.',
  uniqueItems: 'Must not have the same entry twice.',
  unevaluatedProperties: 'Unknown field.',
  'false schema': 'The field is not allowed.',
  propertyNames: 'Has a key that is not allowed.',
  not: 'Has a value that is not allowed.',
  anyOf: 'Has none of the forms that the contract allows.',
  oneOf: 'Has several of the forms that the contract allows; send one of them.',
}

/** The maximum length of an example in an error sentence. */
const maxExample = 80

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Returns the first example that is an object as JSON if it is short, or undefined. */
export function shortExample(examples: readonly unknown[]): string | undefined {
  const example = examples.find(isObject)
  const text = example === undefined ? '' : JSON.stringify(example)
  return text.startsWith('{') && text.length <= maxExample ? text : undefined
}

function unknownKey({ params, parentSchema, instancePath }: ErrorObject, related: string): string {
  const known = Object.keys((parentSchema?.properties ?? {}) as object)
  const word = String(params.additionalProperty)
  const isQuery = instancePath === '/query'
  const [, field = '', operator = ''] = /^(\w+)\[(\w+)\]$/.exec(word) ?? []
  if (!isQuery && known.includes(field)) return `Unknown field. Did you mean \`"${field}": {"${operator}": …}\`?`
  const habit = isQuery ? habitual(word, known) : habitualKey(word, known)
  const reference = isQuery && habit === undefined ? relatedFilter(word, known) : undefined
  const meant = habit ?? reference
  const hint =
    meant === undefined ? didYouMean(word, known) || attributeHint(isQuery, known) : ` Did you mean \`${meant}\`?`
  return `Unknown ${isQuery ? 'parameter' : 'field'}.${hint}${reference === undefined ? '' : related}`
}

/** Says where custom attributes stand, if the request takes any. */
function attributeHint(isQuery: boolean, known: readonly string[]): string {
  if (!known.includes('custom_attributes')) return ''
  return isQuery
    ? ' A custom attribute is filtered by `custom_attributes[code]`.'
    : ' Custom attributes stand in `custom_attributes`.'
}

const counted = (count: unknown, one: string, several: string): string => `${count} ${count === 1 ? one : several}`

function sentenceFor(finding: ErrorObject, related: string): string {
  const { keyword, params, schema, parentSchema, data } = finding
  switch (keyword) {
    case 'choice':
      return `Send either ${(params.keys as string[]).join(' or ')}.`
    case 'reference': {
      const example = shortExample((params.examples as unknown[] | undefined) ?? [])
      const such = example === undefined ? '' : `, such as ${example}`
      return `Must be an id, or an object with ${(params.keys as string[]).join(' or ')}${such}.`
    }
    case 'additionalProperties':
      return unknownKey(finding, related)
    case 'type': {
      const types = [params.type].flat().map((type) => typeNames[String(type)] ?? String(type))
      const example =
        params.type === 'object' && !Array.isArray(data) ? shortExample(parentSchema?.examples ?? []) : undefined
      return `Must be ${types.join(' or ')}${example === undefined ? '' : ` such as ${example}`}.`
    }
    case 'enum': {
      const allowed = (params.allowedValues as unknown[]).filter((each) => each !== null).map(String)
      const hint = typeof data === 'string' ? didYouMean(data, allowed) : ''
      if (allowed.length > maxListed) return `Is none of the ${allowed.length} values that the contract lists.${hint}`
      return `Must be one of ${allowed.join(', ')}.${hint}`
    }
    case 'format':
      return formatSentences[String(params.format)] ?? `Must be in the format ${String(params.format)}.`
    case 'x-value':
      return formatSentences[String(schema)] ?? 'Is not valid.'
    case 'maxLength':
      return `Must not be longer than ${params.limit} characters.`
    case 'minLength':
      return params.limit === 1 ? 'Must not be empty.' : `Must have at least ${params.limit} characters.`
    case 'minimum':
      return `Must be at least ${params.limit}.`
    case 'exclusiveMinimum':
      return `Must be more than ${params.limit}.`
    case 'maximum':
      return `Must be at most ${params.limit}.`
    case 'exclusiveMaximum':
      return `Must be less than ${params.limit}.`
    case 'multipleOf':
      return `Must be a multiple of ${params.multipleOf}.`
    case 'const':
      return `Must be ${JSON.stringify(params.allowedValue)}.`
    case 'maxItems':
    case 'items':
    case 'unevaluatedItems':
      return `Must not have more than ${counted(params.limit ?? params.len, 'entry', 'entries')}.`
    case 'minItems':
      return `Must have at least ${counted(params.limit, 'entry', 'entries')}.`
    case 'contains':
      return `Must have at least ${counted(params.minContains, 'entry', 'entries')} of the kind that the contract describes.`
    case 'maxProperties':
      return `Must not have more than ${counted(params.limit, 'key', 'keys')}.`
    case 'minProperties':
      return `Must have at least ${counted(params.limit, 'key', 'keys')}.`
    case 'dependentRequired':
      return `Needs ${params.missingProperty} when ${params.property} is sent.`
    case 'pattern':
      return formatSentences[String(parentSchema?.['x-value'])] ?? `Must match ${String(params.pattern)}.`
    default:
      return plainSentences[keyword] ?? 'Is not valid.'
  }
}
