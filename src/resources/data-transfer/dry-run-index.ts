// What rows of a file have in common when nothing is kept between its batches: which record each of them made or changed, by what
// must be unique. So a dry run sees what the import itself would: an earlier row's record, and values that two rows share.
import type { Context } from '../../kernel/context.ts'
import { queryCached } from '../../kernel/query/statement-cache.ts'
import { attributesOf } from '../attributes/set.ts'
import type { Done, Plan } from './apply.ts'
import { type Draft, refused } from './rows.ts'

/** A record: one that is stored by its id, one that a row makes by the row. */
type Identity = `#${number}` | `row ${number}`

export interface Memory {
  /** Whose a value is: addresses, names and SKUs that records are found by, and all that must be unique. */
  owners: Map<string, Identity>
  /** The records that rows delete. */
  gone: Set<number>
  /** The rows that make records in the present batch, by the ids those have for now. */
  made: Map<number, number>
}

export const emptyMemory = (): Memory => ({ owners: new Map(), gone: new Set(), made: new Map() })

/** Behind a batch: the records it made are there no more. */
export const nextBatch = (memory: Memory): void => memory.made.clear()

const matchKey = (key: string): string => `match:${key}`

/** The record that a row of an earlier batch makes, if it is the one that these keys are of. */
export function madeBefore({ owners, made }: Memory, keys: readonly string[]): Identity | undefined {
  if (keys.length === 0) return undefined
  const present = new Set([...made.values()].map((row): Identity => `row ${row}`))
  return keys
    .map((key) => owners.get(matchKey(key)))
    .find((owner) => owner?.startsWith('row ') === true && !present.has(owner))
}

/** Remembers what a row did. Throws `RowRefused` for a value that the record of another row has, and what is deleted twice. */
export async function remember(
  ctx: Context,
  memory: Memory,
  plan: Plan,
  draft: Draft,
  { did, id }: Done,
  keys: readonly string[],
): Promise<void> {
  if (did === 'deleted') {
    if (memory.gone.has(id)) throw refused(draft, null, 'An earlier row deletes this record.', 'not_found')
    memory.gone.add(id)
    return
  }
  const maker = did === 'created' ? draft.row : memory.made.get(id)
  const self: Identity = maker === undefined ? `#${id}` : `row ${maker}`
  const attributes = await attributesOf(ctx, plan.type)
  const values = attributes.some(({ isUnique }) => isUnique) ? await valuesOf(ctx, plan, id) : []
  const unique = values.map(({ attribute_id, value }) => ({ attribute_id, key: `${attribute_id}:${value}` }))
  for (const { attribute_id, key } of unique) {
    const owner = memory.owners.get(key)
    if (owner === undefined || owner === self) continue
    const attribute = attributes.find((each) => each.id === attribute_id)
    const who = owner.startsWith('row ') ? `${owner} of the file` : 'a record that another row changes'
    throw refused(draft, attribute?.code ?? null, `This value is that of ${who}.`, 'unique_violation')
  }
  if (did === 'created') memory.made.set(id, draft.row)
  for (const key of [...unique.map((each) => each.key), ...keys.map(matchKey)]) memory.owners.set(key, self)
}

/** A row that changes what an earlier row makes: its keys are that record's as well. */
export function rememberSame(memory: Memory, keys: readonly string[], owner: Identity): void {
  for (const key of keys) memory.owners.set(matchKey(key), owner)
}

/** What of a record must be unique. */
const valuesOf = (ctx: Context, { type }: Plan, id: number) =>
  queryCached(ctx, {
    name: 'unique values of a record',
    values: [type, id],
    build: () =>
      ctx.db
        .selectFrom('unique_values')
        .select(['attribute_id', 'value'])
        .where('entity_type', '=', type)
        .where('entity_id', '=', id),
  })
