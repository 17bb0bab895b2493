// Removes the invalid fields from a body. The operation's rules then check the valid fields, so
// that one reply lists every error.
import type { Shape } from './normalize.ts'

type Json = Record<string, unknown>

export interface Pruned {
  body: object
  /**
   * Returns false for an error that results only from the removal of a field and must not be sent.
   */
  isNews: (field: string) => boolean
}

/** Returns the body without its invalid fields, which `refused` names. */
export function pruned(body: object, shape: Shape, refused: readonly string[]): Pruned {
  const gone = new Set(refused.map((field) => removable(body, shape, field.split('.')).join('.')))
  // Without its `id`, an object cannot be checked. A `…_confirmation` cannot be checked without its
  // field. So the errors of both are ignored.
  const silent = [...gone].flatMap((path) => [path, path.replace(/\.id$/, ''), `${path}_confirmation`])
  return {
    body: without(body, [], gone) as object,
    isNews: (field) => !silent.some((path) => isWithin(field, path) || isWithin(path, field)),
  }
}

/**
 * Returns the path to remove for an invalid field: its own path, or that of its parent if the
 * parent requires the field. A list is removed as a whole, because its entries would shift, and so
 * is an object in the place of an id, because the server has found no record by it.
 */
function removable(body: unknown, shape: Shape, path: readonly string[]): readonly string[] {
  if (path.length <= 1) return path
  const [name = ''] = path.slice(-1)
  const parent = path.slice(0, -1)
  const isNeeded = shapesAt(shape, parent).some(({ required }) => required?.includes(name))
  const isReference = innerShapes(shape, parent).some((each) => each['x-reference'] !== undefined)
  return isNeeded || isReference || Array.isArray(valueAt(body, parent)) ? removable(body, shape, parent) : path
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
  if (Array.isArray(value)) return value.map((each, index) => without(each, [...path, String(index)], gone))
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
