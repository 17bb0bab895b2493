// Removes the invalid fields from a body. The operation's rules then check the valid fields, so
// that one reply lists every error.
import type { ErrorObject } from 'ajv'
import type { FieldErrors } from '../output/problems.ts'
import type { Shape } from './normalize.ts'
import { fieldErrors } from './validation-errors.ts'

type Json = Record<string, unknown>

export interface ValidPart {
  body: object
  /** Whether no required field is missing. */
  isComplete: boolean
  /**
   * Returns the errors of the rules by the fields of the whole body, in which lists have other
   * indexes. Omits errors that result only from the removal of a field.
   */
  news(errors: FieldErrors): FieldErrors
}

/**
 * Returns the body without its invalid fields, which `refused` names. Returns null when `validate`
 * finds more than missing fields in the rest.
 */
export function validPartOf(
  body: object,
  shape: Shape,
  refused: readonly string[],
  validate: (body: object) => readonly ErrorObject[],
): ValidPart | null {
  const part = pruned(body, shape, refused)
  const left = validate(part.body)
  if (left.every(isMissingField)) return { ...part, isComplete: left.length === 0 }
  // A list may need the entries that were removed.
  const lists = Object.keys(fieldErrors(left)).map(part.nameInBody)
  const rest = pruned(body, shape, [...refused, ...lists])
  const last = validate(rest.body)
  return last.every(isMissingField) ? { ...rest, isComplete: last.length === 0 } : null
}

/**
 * Returns whether the error is a missing top-level field. The other fields can still be checked.
 */
const isMissingField = ({ keyword, instancePath }: ErrorObject): boolean =>
  keyword === 'required' && instancePath === '/requestBody'

function pruned(body: object, shape: Shape, refused: readonly string[]) {
  const gone = new Set(refused.map((field) => removable(shape, field.split('.'), body).join('.')))
  // Without its `id`, an object cannot be checked. A `…_confirmation` cannot be checked without its
  // field. So the errors of both are ignored.
  const silent = [...gone].flatMap((path) => [path, path.replace(/\.id$/, ''), `${path}_confirmation`])
  const isNews = (field: string) => !silent.some((path) => isWithin(field, path) || isWithin(path, field))
  const kept = keptEntries(body, gone)
  const nameInBody = (field: string): string => inBody(field.split('.'), kept).join('.')
  const news = (errors: FieldErrors): FieldErrors =>
    Object.fromEntries(
      Object.entries(errors)
        .map(([field, sentences]) => [nameInBody(field), sentences] as const)
        .filter(([field]) => isNews(field)),
    )
  return { body: without(body, [], gone) as object, nameInBody, news }
}

/** Returns the indexes of the entries that remain in each list that loses some, by its path. */
function keptEntries(body: object, gone: ReadonlySet<string>): Map<string, number[]> {
  const kept = new Map<string, number[]>()
  for (const path of gone) {
    const name = path.slice(0, Math.max(0, path.lastIndexOf('.')))
    const list = kept.has(name) ? undefined : valueAt(body, name.split('.'))
    if (Array.isArray(list))
      kept.set(
        name,
        [...list.keys()].filter((at) => !gone.has(`${name}.${at}`)),
      )
  }
  return kept
}

/** Returns the path in the whole body of a field in the body without its invalid fields. */
function inBody(path: readonly string[], kept: ReadonlyMap<string, readonly number[]>): string[] {
  const found: string[] = []
  for (const key of path) found.push(String(kept.get(found.join('.'))?.[Number(key)] ?? key))
  return found
}

/**
 * Returns the path to remove for an invalid field: its own path, or that of its parent if the
 * parent requires the field. An object in the place of an id is removed as a whole, because the
 * server has found no record by it.
 */
function removable(shape: Shape, path: readonly string[], body: unknown): readonly string[] {
  if (path.length <= 1) return path
  const [name = ''] = path.slice(-1)
  const parent = path.slice(0, -1)
  const isEntry = Array.isArray(valueAt(body, parent))
  const isNeeded = shapesAt(shape, parent).some(({ required }) => required?.includes(name))
  const isReference = innerShapes(shape, parent).some((each) => each['x-reference'] !== undefined)
  return !isEntry && (isNeeded || isReference) ? removable(shape, parent, body) : path
}

const valueAt = (value: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>((inner, key) => (inner as Json | null | undefined)?.[key], value)

const branches = (shape: Shape): readonly Shape[] => shape.anyOf ?? shape.oneOf ?? [shape]

/** Returns the schemas of the value at a path, with the branches of unions in their place. */
const shapesAt = (shape: Shape, path: readonly string[]): readonly Shape[] =>
  path.length === 0 ? branches(shape) : innerShapes(shape, path).flatMap(branches)

/** Returns the schemas of the value at a path that is not empty. */
const innerShapes = (shape: Shape, path: readonly string[]): readonly Shape[] =>
  shapesAt(shape, path.slice(0, -1)).flatMap(({ properties, items }) => {
    const key = path.at(-1) ?? ''
    return items ?? (properties && Object.hasOwn(properties, key) ? (properties[key] ?? []) : [])
  })

function without(value: unknown, path: readonly string[], gone: ReadonlySet<string>): unknown {
  if (Array.isArray(value))
    return value.flatMap((each, index) => {
      const at = [...path, String(index)]
      return gone.has(at.join('.')) ? [] : [without(each, at, gone)]
    })
  if (typeof value !== 'object' || value === null) return value
  const left: Json = {}
  for (const [key, each] of Object.entries(value)) {
    const at = [...path, key]
    if (gone.has(at.join('.'))) continue
    Object.defineProperty(left, key, {
      value: without(each, at, gone),
      enumerable: true,
      configurable: true,
      writable: true,
    })
  }
  return left
}

const isWithin = (field: string, path: string): boolean => `${field}.`.startsWith(`${path}.`)
