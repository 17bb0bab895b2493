// Counts what a validation would do to the records, and the stored values that it would replace.
import type { Schema } from '../../../contract/types.ts'
import type { AccordEvent, Snapshot } from '../../../kernel/write/events.ts'
import type { RowResult } from '../apply-rows/apply-row.ts'
import type { ImportType } from '../settings.ts'

export type Preview = Schema<'ImportPreview'>

export const createPreview = (): Preview => ({
  created: 0,
  updated: 0,
  unchanged: 0,
  deleted: 0,
  skipped: 0,
  conflicts: [],
})

/** Adds the result of a row, with the events that the row has caused. */
export function addRow(
  preview: Preview,
  row: number,
  { did, id }: RowResult,
  type: ImportType,
  events: readonly AccordEvent[],
): void {
  const own = events.filter(({ entityType, entityId }) => entityType === type && entityId === id)
  const changes = own.filter(({ before, changed, entity }) => !before || entity === null || changed?.length !== 0)
  preview[did === 'updated' && changes.length === 0 ? 'unchanged' : did]++
  if (did !== 'updated') return
  const fields = changes.flatMap(({ before, entity, changed = [] }) =>
    changedPlaces(changed, before ?? {}, entity ?? {}).filter(
      (key) => !changed.includes(`${key}_id`) && !isEmpty(valueAt(before ?? {}, key)),
    ),
  )
  for (const field of new Set(fields)) addConflict(preview, { field, count: 1, row })
}

/** Adds the counts of a batch. */
export function addPreview(all: Preview, { conflicts, ...counts }: Preview): void {
  for (const [did, count] of Object.entries(counts)) all[did as keyof typeof counts] += count
  for (const conflict of conflicts) addConflict(all, conflict)
}

function addConflict({ conflicts }: Preview, { field, count, row }: Preview['conflicts'][number]): void {
  const known = conflicts.find((each) => each.field === field)
  if (known) known.count += count
  else conflicts.push({ field, count, row })
}

/** Returns the changed keys, with `external_ids` as `external_ids.<source>` for each changed id. */
export const changedPlaces = (changed: readonly string[], before: Snapshot, after: Snapshot): string[] =>
  changed.flatMap((key) => {
    if (key !== 'external_ids') return key
    const sources = new Set([before, after].flatMap(({ external_ids: ids }) => Object.keys(ids ?? {})))
    return [...sources].map((source) => `${key}.${source}`).filter((at) => valueAt(before, at) !== valueAt(after, at))
  })

/** Returns the value of a field of a snapshot, or of a part of it: `custom_attributes.<code>`. */
export function valueAt(snapshot: Snapshot, key: string): unknown {
  const [, field = key, part] = /^([^.]+)\.(.+)$/.exec(key) ?? []
  return part === undefined ? snapshot[field] : (snapshot[field] as Snapshot | undefined)?.[part]
}

const isEmpty = (value: unknown): boolean =>
  value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0)
