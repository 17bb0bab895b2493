// Reads an HTML form into a nested body. `persons[emails][0][value]=…` sets a field of a list entry
// in an object. `tags[]=…` adds an entry to a list. Values stay texts, which normalize.ts converts.

import { Problem } from '../output/problems.ts'
import { flagIn } from './flags.ts'
import { charsetIn, formText, unescaped } from './form-text.ts'
import type { Finding } from './validation-errors.ts'
import { manyFields, maxFormFields, refuseManyFields } from './value-count.ts'

const deepest = 5

type Node = Map<string, Node | string>

/**
 * Throws 400 for a form that has too many fields or levels, or uses a field both as a value and as
 * a list.
 */
export function readNested(body: Buffer, contentType: string): { value: Record<string, unknown>; found: Finding[] } {
  return nestFields(formPairs(body, contentType), false)
}

/** Returns the names and values of a form. Throws 400 for too many fields. */
export function formPairs(body: Buffer, contentType: string): [name: string, value: string][] {
  const text = body.toString('latin1')
  refuseManyFields(text)
  const charset = charsetIn(contentType)
  return text
    .split('&')
    .filter((pair) => pair !== '')
    .map((pair) => {
      const [, name = '', value = ''] = /^([^=]*)=?([\s\S]*)$/.exec(pair) ?? []
      const decoded = (part: string): string => formText(unescaped(Buffer.from(part, 'latin1')), charset)
      return [decoded(name), decoded(value)]
    })
}

/**
 * Nests the fields of a form by their names. Numeric keys become a list. With `keepsGaps`, numeric
 * keys with gaps stay keys of an object, because they may be ids. Throws like `readNested`.
 */
export function nestFields(
  fields: readonly (readonly [name: string, value: string])[],
  keepsGaps: boolean,
): { value: Record<string, unknown>; found: Finding[] } {
  if (fields.length > maxFormFields) throw manyFields()
  const root: Node = new Map()
  const found: Finding[] = []
  for (const [name, value] of fields) put(root, pathOf(name), value, found)
  return { value: objectOf(root, keepsGaps), found }
}

/**
 * Splits the field name `a[b][]` into `a`, `b` and an empty part. Returns any other name as one
 * part.
 */
function pathOf(name: string): string[] {
  const [, first, rest = ''] = /^([^[\]]+)((?:\[[^[\]]*\])*)$/.exec(name) ?? []
  if (first === undefined) return [name]
  const path = [first, ...[...rest.matchAll(/\[([^\]]*)\]/g)].map(([, key = '']) => key)]
  if (path.length > deepest)
    throw new Problem('malformed_request', `Fields of a form can be ${deepest} levels deep at most.`)
  return path
}

function put(root: Node, path: readonly string[], value: string, found: Finding[]): void {
  const field = path.join('.')
  const mixed = (): Problem => new Problem('malformed_request', 'A field of the form is a value and a list at once.')
  let node = root
  for (const [index, part] of path.entries()) {
    const key = part === '' ? String(node.size) : part
    const there = node.get(key)
    if (index < path.length - 1) {
      if (typeof there === 'string') throw mixed()
      const next: Node = there ?? new Map()
      node.set(key, next)
      node = next
    } else if (there instanceof Map) throw mixed()
    else {
      if (there !== undefined && flagIn(there) !== false) found.push([field, 'Must not be sent more than once.'])
      node.set(key, value)
    }
  }
}

function readNode(node: Node | string, keepsGaps: boolean): unknown {
  if (typeof node === 'string') return node
  const keys = [...node.keys()]
  if (keys.length === 0 || !keys.every((key) => /^\d{1,9}$/.test(key))) return objectOf(node, keepsGaps)
  const sorted = keys.sort((one, other) => Number(one) - Number(other))
  if (keepsGaps && sorted.some((key, index) => key !== String(index))) return objectOf(node, keepsGaps)
  // Sorts the entries by position and closes gaps, which a web page leaves when it removes rows.
  return sorted.map((key) => readNode(node.get(key) ?? '', keepsGaps))
}

/**
 * Returns the node as an object. `defineProperty` makes `__proto__` an ordinary key, which the
 * validator refuses.
 */
function objectOf(node: Node, keepsGaps: boolean): Record<string, unknown> {
  const object: Record<string, unknown> = {}
  for (const [key, each] of node)
    Object.defineProperty(object, key, {
      value: readNode(each, keepsGaps),
      enumerable: true,
      configurable: true,
      writable: true,
    })
  return object
}
