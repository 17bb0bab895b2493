// An index of the records that the rows of a dry run created or changed, by match key and unique
// value. Each batch is rolled back, so the database does not show these records to later batches.
// The index lets later rows match these records, and detects duplicates in the file.
import { type Bound, cachedQuery } from '../../../../db/cached-query.ts'
import type { Db } from '../../../../db/store.ts'
import type { Context } from '../../../kernel/context.ts'
import { attributesOf } from '../../attributes/attribute-set.ts'
import { type RowDraft, rowRefused } from '../draft-rows/row-drafts.ts'
import type { ImportPlan } from '../settings.ts'
import type { RowResult } from './apply-row.ts'

/**
 * Identifies a stored record by its id, and a new record by the number of the row that created it.
 */
type Identity = `#${number}` | `row ${number}`

export interface DryRunIndex {
  /** The record that has a key. The keys are match keys and unique attribute values. */
  owners: Map<string, Identity>
  /** The ids of records that earlier rows of this dry run deleted. */
  gone: Set<number>
  /**
   * The row number that created a record, by the temporary id of the record. Contains only records
   * of the current batch.
   */
  made: Map<number, number>
  /** The functions that undo the changes of the current batch, oldest first. */
  undo: (() => void)[]
}

export const createDryRunIndex = (): DryRunIndex => ({ owners: new Map(), gone: new Set(), made: new Map(), undo: [] })

/** Removes the temporary ids of a batch. Must be called after the rollback of the batch. */
export function endBatch(index: DryRunIndex): void {
  index.made.clear()
  index.undo.length = 0
}

/** Removes everything that the current batch has added, so that the batch can run again. */
export function undoBatch(index: DryRunIndex): void {
  for (const undo of index.undo.reverse()) undo()
  endBatch(index)
}

function setOwner({ owners, undo }: DryRunIndex, key: string, owner: Identity): void {
  const earlier = owners.get(key)
  undo.push(() => void (earlier === undefined ? owners.delete(key) : owners.set(key, earlier)))
  owners.set(key, owner)
}

const matchKey = (key: string): string => `match:${key}`

/** Returns the record with one of these keys, if a row of an earlier batch created it. */
export function findEarlierRecord({ owners, made }: DryRunIndex, keys: readonly string[]): Identity | undefined {
  if (keys.length === 0) return undefined
  const present = new Set([...made.values()].map((row): Identity => `row ${row}`))
  return keys
    .map((key) => owners.get(matchKey(key)))
    .find((owner) => owner?.startsWith('row ') === true && !present.has(owner))
}

/**
 * Adds the result of a row to the index. Throws `ImportStop` when another row's record has the same
 * unique value, or when an earlier row deletes the same record.
 */
export async function addResult(
  ctx: Context,
  index: DryRunIndex,
  plan: ImportPlan,
  draft: RowDraft,
  { did, id }: RowResult,
  keys: readonly string[],
): Promise<void> {
  if (did === 'deleted') {
    if (index.gone.has(id)) throw rowRefused(draft, null, 'An earlier row deletes this record.', 'not_found')
    index.gone.add(id)
    index.undo.push(() => void index.gone.delete(id))
    return
  }
  const maker = did === 'created' ? draft.row : index.made.get(id)
  const self: Identity = maker === undefined ? `#${id}` : `row ${maker}`
  const attributes = await attributesOf(ctx, plan.type)
  const values = attributes.some(({ isUnique }) => isUnique) ? await valuesOf(ctx.db, plan.type, id) : []
  const unique = values.map(({ attribute_id, value }) => ({ attribute_id, key: `${attribute_id}:${value}` }))
  for (const { attribute_id, key } of unique) {
    const owner = index.owners.get(key)
    if (owner === undefined || owner === self) continue
    const attribute = attributes.find((each) => each.id === attribute_id)
    const who = owner.startsWith('row ') ? `${owner} of the file` : 'a record that another row changes'
    throw rowRefused(draft, attribute?.code ?? null, `This value is that of ${who}.`, 'unique_violation')
  }
  if (did === 'created') index.made.set(id, draft.row)
  for (const key of [...unique.map((each) => each.key), ...keys.map(matchKey)]) setOwner(index, key, self)
}

/** Adds the match keys of a row that updates a record from an earlier batch. */
export function addKeys(index: DryRunIndex, keys: readonly string[], owner: Identity): void {
  for (const key of keys) setOwner(index, matchKey(key), owner)
}

const valuesOf = cachedQuery((db: Db, entity: Bound<ImportPlan['type']>, id: Bound<number>) =>
  db
    .selectFrom('unique_values')
    .select(['attribute_id', 'value'])
    .where('entity_type', '=', entity)
    .where('entity_id', '=', id),
)
