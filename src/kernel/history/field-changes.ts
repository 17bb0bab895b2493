// Computes the changed fields of an event from its snapshots, for history and timelines. All
// functions are pure. A reference appears once, reduced to the keys that every reader may see.
import { capital } from '../values/format.ts'
import type { Snapshot } from '../write/events.ts'

export interface Change {
  key: string
  label: string
  old: unknown
  new: unknown
}

/** One row of the event log, after its JSON columns were parsed. */
export interface Logged {
  entity: string
  before: Snapshot | null
  after: Snapshot | null
  changed: readonly string[]
  /** Keys whose values are derived from other fields (x-derived). */
  derivedKeys: readonly string[]
}

/** Display names of attributes, by attribute code. */
export type Labels = ReadonlyMap<string, string>

const own = 'custom_attributes.'
/** Keys that every record has and no caller sets. */
const bookkeeping: ReadonlySet<string> = new Set(['id', 'created_at', 'updated_at', 'version'])
/** The keys that a reference contains even if the caller may not see the record. */
const shownOfRefs = new Set(
  [
    'id',
    'name',
    'email',
    'title',
    'subject',
    'type',
    'from',
    'code',
    'probability',
    'sort_order',
    'color',
    'sku',
  ].concat(['size', 'content_type', 'permission_type']),
)

const singular = (entity: string): string => entity.replace(/ies$/, 'y').replace(/s$/, '')

/**
 * Snapshots contain a reference twice: as an id (`user_id`) and as an object (`user`). Returns a
 * predicate that recognizes the object field of the id field `key`: `user` for `user_id`, `person`
 * for `main_person_id`, `leads` for `lead_ids`.
 */
const showsOf = (key: string): ((name: string) => boolean) => {
  if (key.endsWith('_ids')) return (name) => name === `${key.slice(0, -4)}s`
  const stem = key.endsWith('_id') && !key.startsWith(own) ? key.slice(0, -3) : null
  return (name) => stem !== null && (stem === name || stem.endsWith(`_${name}`))
}

/**
 * Returns the field changes of one event: the changed fields of an updated record, or all fields
 * with a value of a created or deleted record.
 */
export function changesOf({ entity, before, after, changed, derivedKeys }: Logged, labels: Labels): Change[] {
  const one = before ?? after ?? {}
  const keys = before && after ? changed : fieldsOf(one, entity, derivedKeys)
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])]
  const isShown = (name: string) => keys.some((key) => key !== name && showsOf(key)(name))
  return keys
    .filter((key) => !isShown(key))
    .map((key) => {
      const shown = names.find(showsOf(key)) ?? key
      return { key, label: labelOf(key, labels), old: valueIn(before, shown), new: valueIn(after, shown) }
    })
}

/**
 * Returns the keys of a snapshot that have a value. Omits keys that no caller sets, derived keys
 * and counts. Also omits the id of the record itself, which the snapshot of a link contains.
 */
function fieldsOf(snapshot: Snapshot, entity: string, derivedKeys: readonly string[]): string[] {
  const isSet = (value: unknown): boolean =>
    value !== null && value !== undefined && !(Array.isArray(value) && value.length === 0)
  const keys: string[] = []
  for (const [key, value] of Object.entries(snapshot)) {
    if (bookkeeping.has(key) || derivedKeys.includes(key) || key.endsWith('_count') || key === `${singular(entity)}_id`)
      continue
    if (key !== 'custom_attributes') {
      if (isSet(value)) keys.push(key)
      continue
    }
    for (const [code, each] of Object.entries((value ?? {}) as Snapshot)) if (isSet(each)) keys.push(own + code)
  }
  return keys
}

/** Returns the value of a field in a snapshot; null when the field has no value. */
export function valueIn(snapshot: Snapshot | null, key: string): unknown {
  if (!snapshot) return null
  const custom = key.startsWith(own) ? (snapshot.custom_attributes as Snapshot | undefined) : undefined
  const value = custom ? custom[key.slice(own.length)] : snapshot[key]
  return asSeen(value) ?? null
}

/**
 * Reduces an object with an id to a reference, because the author of the event may have seen more
 * fields of the object than the reader may.
 */
export function asSeen(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || !('id' in value)) return value
  return Object.fromEntries(Object.entries(value).filter(([key]) => shownOfRefs.has(key)))
}

/**
 * Returns the display name of a field: the name of the custom attribute, or else the last part of
 * the key in words.
 */
export function labelOf(key: string, labels: Labels): string {
  const code = key.slice(key.lastIndexOf('.') + 1)
  return labels.get(code) ?? inWords(code.replace(/_ids$/, 's').replace(/_id$/, ''))
}

const inWords = (key: string): string => key.split('_').filter(Boolean).map(capital).join(' ')
