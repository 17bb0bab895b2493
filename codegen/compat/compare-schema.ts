// Compares two schemas in one direction. A request may only become wider, because clients send what
// the old schema allowed. A reply may only become narrower, except for new optional keys and new
// enum values, which clients must tolerate (README.md, "Compatibility").
import { type ContractDocument, isObject, resolve, type SchemaObject } from '../read.ts'

export type Direction = 'requests' | 'replies'

/** A difference between two contracts. `breaks` says what to write instead of a breaking change. */
export interface ContractChange {
  /** The part of the contract, such as `Lead.title in replies` or `listLeads ?sort`. */
  where: string
  /** The predicate of a sentence about the change, such as `was removed`. */
  what: string
  breaks?: string
  /** The removed part in the old contract, or the added part in the new contract. */
  removed?: Record<string, unknown>
  added?: Record<string, unknown>
}

export interface Compared {
  before: ContractDocument
  now: ContractDocument
  /** The pairs of schemas that were compared already, by direction. */
  seen: Set<string>
  changes: ContractChange[]
}

export const keepBoth =
  'Keep it, with `deprecated: true`, `x-deprecated-on`, `x-sunset` and `x-replaced-by`, beside its replacement; ' +
  'an old name of the same value has `x-alias` in place of `x-replaced-by`.'
const asBefore = (key: string): string => `Leave \`${key}\` as it was, or add another key for the new meaning.`

type Schema = SchemaObject | undefined

export function compareSchemas(all: Compared, where: string, direction: Direction, before: Schema, now: Schema): void {
  // A shared schema is compared once, under its own name.
  const isShared = before?.$ref !== undefined && before.$ref === now?.$ref
  const place = isShared ? `${before.$ref?.split('/').at(-1)} in ${direction}` : where
  if (before?.$ref !== undefined) {
    const key = `${direction} ${before.$ref} ${isShared ? '' : where}`
    if (all.seen.has(key)) return
    all.seen.add(key)
  }
  const [old, fresh] = [resolve(all.before, before) ?? {}, resolve(all.now, now) ?? {}]
  const inner = { all, place, direction, old, fresh }
  compareTypes(inner)
  compareValues(inner)
  if (direction === 'requests') compareLimits(inner)
  compareProperties(inner)
  compareBranches(inner)
  if (old.items) compareSchemas(all, named(place, '[]'), direction, old.items, fresh.items ?? {})
  for (const key of ['additionalProperties', 'patternProperties'] as const)
    if (isObject(old[key]) && isObject(fresh[key]))
      compareSchemas(all, named(place, '.*'), direction, old[key] as SchemaObject, fresh[key] as SchemaObject)
}

interface Pair {
  all: Compared
  place: string
  direction: Direction
  old: SchemaObject
  fresh: SchemaObject
}

/** Adds a step to a place: `Lead.title in replies` for `Lead in replies` and `.title`. */
const named = (place: string, step: string): string => {
  const [, name = place, rest = ''] = /^(.*?)( in (?:requests|replies))?$/.exec(place) ?? []
  return `${name}${name.endsWith(' body') && step.startsWith('.') ? ` ${step.slice(1)}` : step}${rest}`
}

const typesOf = ({ type }: SchemaObject): string[] => [type ?? []].flat()
const isWithin = (types: string[], wider: string[]): string[] =>
  wider.length === 0
    ? []
    : types.filter((each) => !wider.includes(each) && !(each === 'integer' && wider.includes('number')))

function compareTypes({ all, place, direction, old, fresh }: Pair): void {
  const [was, is] = [typesOf(old), typesOf(fresh)]
  if (was.length === 0 && is.length === 0) return
  const [some, wider] = direction === 'requests' ? [was, is] : [is, was]
  const beyond = some.length === 0 && wider.length > 0 ? ['any type'] : isWithin(some, wider)
  for (const type of beyond) {
    const [what, breaks] =
      direction === 'requests'
        ? [`no longer takes ${type}`, `Go on taking ${type}, and convert it.`]
        : [`can now be ${type}`, `Send only ${was.join(' or ')} here; a value of another type needs a key of its own.`]
    all.changes.push({ where: place, what, breaks })
  }
}

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

function compareValues({ all, place, direction, old, fresh }: Pair): void {
  const push = (what: string, breaks?: string): void =>
    void all.changes.push({ where: place, what, ...(breaks !== undefined && { breaks }) })
  const [was, is] = [listOf(old.enum), listOf(fresh.enum)]
  const lost = was.filter((each) => !is.includes(each))
  if (direction === 'requests' && is.length > 0) {
    for (const each of lost) {
      const removed = (old['x-aliases'] as Record<string, Record<string, unknown>> | undefined)?.[String(each)]
      all.changes.push({
        where: place,
        what: `no longer takes ${JSON.stringify(each)}`,
        breaks: 'Go on taking it, as another name of the value to use instead.',
        ...(removed && { removed }),
      })
    }
    if (was.length === 0) push('takes only listed values', asBefore('enum'))
  }
  if (direction === 'replies' && was.length > 0 && is.length === 0) push('can now be any value', asBefore('enum'))
  if (direction === 'replies' && place.startsWith('ProblemCode ') && is.length > 0)
    for (const each of lost)
      push(`lost the code ${each}`, 'Go on sending the old code: clients compare it. A new cause gets a new code.')
  if (was.length > 0) for (const each of is.filter((one) => !was.includes(one))) push(`knows ${JSON.stringify(each)}`)
  for (const key of ['const', 'format', 'x-value', 'contentEncoding', 'discriminator']) {
    const [one, other] = [old[key], fresh[key]].map((each) => JSON.stringify(each))
    const isLooser = direction === 'requests' ? other === undefined : one === undefined
    if (one !== other && !isLooser) push(`has the ${key} ${other ?? 'no more'}, not ${one ?? 'any'}`, asBefore(key))
  }
  const [one, other] = [old.default, fresh.default].map((each) => JSON.stringify(each))
  if (direction === 'requests' && one !== other)
    push(
      `is ${other ?? 'unset'} by default, not ${one ?? 'unset'}`,
      'Keep the default: a client that leaves the key out relies on it. Offer the new value under a new key.',
    )
}

const lowerBounds = ['minLength', 'minimum', 'exclusiveMinimum', 'minItems', 'minProperties']
const upperBounds = ['maxLength', 'maximum', 'exclusiveMaximum', 'maxItems', 'maxProperties']
const marks = ['uniqueItems', 'x-explicit-null', 'dependentRequired', 'pattern', 'multipleOf', 'contains']

/** Returns whether values of the schema can break a limit. Null, for one, has no minimum. */
function isLimited(schema: SchemaObject, key: string): boolean {
  const types = typesOf(schema)
  if (types.length === 0) return true
  if (/Length$|^pattern$/.test(key)) return types.includes('string')
  if (/imum$|^multipleOf$/i.test(key)) return types.includes('integer') || types.includes('number')
  return true
}

/** Finds limits that are narrower than before. */
function compareLimits({ all, place, old, fresh }: Pair): void {
  const tell = (key: string): void => {
    if (!isLimited(old, key)) return
    all.changes.push({
      where: place,
      what: `has ${key} ${JSON.stringify(fresh[key])}, not ${JSON.stringify(old[key]) ?? 'none'}`,
      breaks: `Go on taking what was valid: restore \`${key}\`, or shorten and round such values in the handler.`,
    })
  }
  const isNarrower = (key: string, sign: 1 | -1): boolean =>
    typeof fresh[key] === 'number' &&
    (typeof old[key] !== 'number' || sign * (fresh[key] as number) > sign * (old[key] as number))
  for (const key of lowerBounds) if (isNarrower(key, 1) && (fresh[key] !== 0 || old[key] !== undefined)) tell(key)
  for (const key of upperBounds) if (isNarrower(key, -1)) tell(key)
  for (const key of marks)
    if (fresh[key] !== undefined && JSON.stringify(old[key]) !== JSON.stringify(fresh[key])) tell(key)
  if (old['x-reference'] !== undefined && fresh['x-reference'] !== old['x-reference'])
    all.changes.push({ where: place, what: 'no longer takes a name', breaks: asBefore('x-reference') })
  if (old.additionalProperties !== false && fresh.additionalProperties === false && fresh.properties)
    all.changes.push({ where: place, what: 'takes only listed keys', breaks: asBefore('additionalProperties') })
}

function compareProperties({ all, place, direction, old, fresh }: Pair): void {
  const [was, is] = [old.properties ?? {}, fresh.properties ?? {}]
  const [needed, needs] = [listOf(old.required), listOf(fresh.required)]
  for (const [key, schema] of Object.entries(was)) {
    const where = named(place, `.${key}`)
    const found = is[key]
    if (found === undefined) {
      all.changes.push({ where, what: 'was removed', breaks: keepBoth, removed: schema })
      continue
    }
    noteDeprecation(all, where, schema, found)
    compareSchemas(all, where, direction, schema, found)
    if (direction === 'replies' && needed.includes(key) && !needs.includes(key))
      all.changes.push({ where, what: 'can be missing', breaks: 'Send it always: null or an empty list says nothing.' })
  }
  for (const [key, schema] of Object.entries(is))
    if (was[key] === undefined) all.changes.push({ where: named(place, `.${key}`), what: 'is new', added: schema })
  if (direction === 'replies') return
  /** Whether an old name carries the value, so that an old request has it. */
  const isCarried = (key: unknown): boolean =>
    Object.entries(is).some(([each, schema]) => schema['x-alias'] === key && was[each] !== undefined)
  for (const key of needs.filter((each) => !needed.includes(each) && !isCarried(each)))
    all.changes.push({
      where: named(place, `.${key}`),
      what: 'is required',
      breaks: 'Leave it optional, and choose a default where it is missing.',
    })
}

/** Notes that a part is deprecated now. */
export function noteDeprecation(
  { changes }: Compared,
  where: string,
  before: Record<string, unknown>,
  now: Record<string, unknown>,
): void {
  if (now.deprecated !== true || before.deprecated === true) return
  const instead = now['x-alias'] ?? now['x-replaced-by']
  const use = instead === undefined ? '' : `: use \`${instead}\``
  changes.push({ where, what: `is deprecated and ends on ${now['x-sunset']}${use}` })
}

/** Pairs the branches of unions. A branch fits if nothing in the pair breaks. */
function compareBranches({ all, place, direction, old, fresh }: Pair): void {
  const [was, is] = [old, fresh].map(({ oneOf, anyOf, allOf }) => oneOf ?? anyOf ?? allOf ?? []) as [Schema[], Schema[]]
  const fits = (one: Schema, other: Schema): boolean => {
    const tried: Compared = { ...all, seen: new Set(), changes: [] }
    compareSchemas(tried, place, direction, one, other)
    return tried.changes.every(({ breaks }) => breaks === undefined)
  }
  if (was.length === is.length && was.length > 0) {
    const { length } = all.changes
    for (const [index, branch] of was.entries())
      compareSchemas(all, named(place, `(${index + 1})`), direction, branch, is[index])
    const isBroken = all.changes.slice(length).some(({ breaks }) => breaks !== undefined)
    // Another branch may take what the branch at this position took.
    const isMoved =
      isBroken &&
      direction === 'requests' &&
      fresh.allOf === undefined &&
      was.every((branch) => is.some((each) => fits(branch, each)))
    if (isMoved) all.changes.length = length
    return
  }
  const lost = was.filter((branch) => !is.some((each) => fits(branch, each)))
  const news = is.filter((branch) => !was.some((each) => fits(each, branch)))
  // A request may get further forms beside the one it had.
  const isWidened = was.length === 0 && fresh.allOf === undefined && is.some((each) => fits(old, each))
  const added = direction === 'requests' ? !isWidened : false
  const breaking = was.length === 0 ? (added ? news : []) : direction === 'requests' ? lost : news
  const isOpened = direction === 'requests' && is.length === 0 && typesOf(fresh).length === 0
  if (breaking.length > 0 && !isOpened)
    all.changes.push({
      where: place,
      what: direction === 'requests' ? 'no longer takes one of its forms' : 'has a form that no client knows',
      breaks: asBefore('oneOf'),
    })
}
