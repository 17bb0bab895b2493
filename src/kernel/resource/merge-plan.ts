// Explains a merge: which value of which record won in each field and why, and what moved.
import { bodyKeys } from '../../contract/input/body-reader.ts'
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../context.ts'
import { relationsOf } from '../history/archive.ts'
import { type Moved, typeOfMoved } from '../history/moved-references.ts'
import type { Snapshot } from '../write/events.ts'
import type { AnyDefinition } from './any-definition.ts'
import { isSameValue } from './united-rows.ts'

const own = 'custom_attributes'

const valueAt = (record: Snapshot, key: string): unknown =>
  (key.startsWith(`${own}.`) ? (record[own] as Snapshot | undefined)?.[key.slice(own.length + 1)] : record[key]) ?? null

interface Result {
  /** The records before the merge, first that of the path. */
  shown: ReadonlyMap<number, Snapshot>
  after: Snapshot
  /** The fields that the request sets. */
  sent: ReadonlySet<string>
}

/** Returns the fields in which merged records differ, with the values before and after. */
export function mergedFields(
  { services }: Context,
  { operations, merging }: AnyDefinition,
  { shown, after, sent }: Result,
): Schema<'MergedField'>[] {
  const [[id, first] = [0, {}]] = shown
  const fields = [...bodyKeys(services.contract, operations.update)].filter((key) => key in after && key !== own)
  const codes = Object.keys((after[own] ?? {}) as Snapshot).map((code) => `${own}.${code}`)
  return [...fields, ...codes].flatMap((field): Schema<'MergedField'>[] => {
    const value = valueAt(after, field)
    const values = [...shown].map(([each, record]) => ({ id: each, value: valueAt(record, field) }))
    if (values.every((each) => isSameValue(each.value, value))) return []
    const about = { field, value, values }
    if (sent.has(field) || (field.startsWith(own) && sent.has(own) && !isSameValue(value, valueAt(first, field))))
      return [{ ...about, reason: 'sent', from_id: null }]
    if (isSameValue(values[0]?.value, value)) return [{ ...about, reason: 'kept', from_id: id }]
    if (merging?.lists[field] !== undefined || field === 'external_ids')
      return [{ ...about, reason: 'united', from_id: null }]
    return [{ ...about, reason: 'filled', from_id: values.find((each) => isSameValue(each.value, value))?.id ?? null }]
  })
}

/** Returns the number of moved links by the type of the records that refer. */
export async function movedLinks(ctx: Context, links: readonly Moved[]): Promise<Schema<'MovedLinks'>[]> {
  const relations = await relationsOf(ctx)
  const counts = new Map<string, number>()
  for (const moved of links) {
    const type = typeOfMoved(ctx, relations, moved)
    counts.set(type, (counts.get(type) ?? 0) + (moved.ids ?? moved.links ?? []).length)
  }
  return [...counts].sort().map(([type, count]) => ({ type, count }))
}
