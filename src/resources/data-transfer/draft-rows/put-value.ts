// Puts the value of a cell into the body of a row. Several columns of one field are joined if the
// field is a text, and collected if it is a list. Of any other field, the first filled one counts.
import { phoneKey } from '../../../../db/schema/phone-numbers.ts'
import { fold } from '../../../kernel/values/format.ts'
import type { FileColumn } from '../map-columns/columns.ts'
import { readAddresses, readLines, readNumbers, readText } from '../read-cells/cell-readers.ts'

interface Change {
  column: string
  from: string | null
  to: string | null
}

/**
 * Puts the value into the body. Adds a change for a value that is not imported, because another
 * column has filled the field. Returns whether the column counts. The
 * column of a fallback does not count when the field is filled.
 */
export function putValue(
  body: Record<string, unknown>,
  column: FileColumn,
  value: unknown,
  changes: Change[],
): boolean {
  const present = column.path.reduce<unknown>(
    (inner, key) =>
      typeof inner === 'object' && inner !== null && Object.hasOwn(inner, key) ? Reflect.get(inner, key) : undefined,
    body,
  )
  if (present === undefined || present === null) {
    put(body, column.path, value)
    return true
  }
  if (column.isFallback) return false
  if (Array.isArray(present) && Array.isArray(value)) put(body, column.path, collected(present, value, column))
  else if (
    typeof present === 'string' &&
    typeof value === 'string' &&
    (column.read === readText || column.read === readLines)
  )
    put(body, column.path, joined(present, value, column))
  else if (value !== present && String(value) !== String(present))
    changes.push({ column: column.header, from: String(value).slice(0, maxTold), to: null })
  return true
}

const maxTold = 200

/** Returns the entries without those that differ from an earlier entry only in its notation. */
function collected(present: unknown[], added: unknown[], { read }: FileColumn): unknown[] {
  const keyOf = (entry: unknown): string => {
    const value = typeof entry === 'object' && entry !== null ? Reflect.get(entry, 'value') : entry
    if (typeof value !== 'string') return JSON.stringify(entry)
    return read === readNumbers ? phoneKey(value) : read === readAddresses ? fold(value) : value
  }
  const seen = new Set(present.map(keyOf))
  return [...present, ...added.filter((entry) => !seen.has(keyOf(entry)) && seen.add(keyOf(entry)))]
}

const lineFields: ReadonlySet<string> = new Set(['address', 'description'])

function joined(present: string, added: string, { name, path }: FileColumn): string {
  const text = added.trim()
  if (present === text) return present
  if (name === 'name' || name === 'person' || name === 'status') return `${present} ${text}`
  return `${present}${lineFields.has(path.at(-1) ?? '') ? '\n' : ', '}${text}`
}

function put(body: Record<string, unknown>, path: readonly string[], value: unknown): void {
  const [key = '', ...below] = path
  if (below.length === 0) {
    // Plain assignment to `__proto__` would set the prototype instead of a key.
    Object.defineProperty(body, key, { value, enumerable: true, configurable: true, writable: true })
    return
  }
  const inner = Object.hasOwn(body, key) ? (body[key] as Record<string, unknown>) : {}
  put(inner, below, value)
  put(body, [key], inner)
}
