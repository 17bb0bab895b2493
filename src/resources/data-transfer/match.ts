// Which record a row stands for (DOMAIN 21.1): persons by any e-mail address, organizations by name, products by SKU, leads by
// id. Only records that the import's user sees are found; another one's name or address is refused as taken.
import { padded } from '../../../db/compiled.ts'
import type { Context } from '../../kernel/context.ts'
import { fold } from '../../kernel/format.ts'
import { ask } from '../../kernel/kept.ts'
import { attributeSet } from '../attributes/set.ts'
import { type Action, keyColumns, type Type } from './columns.ts'
import { type Draft, refused } from './rows.ts'

interface Keyed {
  emails?: readonly { value: string | null }[] | null
  name?: string | null
  sku?: string | null
}

/** The forms in which what the row says of its record is compared; none for a row that makes a record in any case. */
export function keysOf(type: Type, action: Action, draft: Draft, body: Keyed): string[] {
  if (type === 'leads') {
    if (draft.id === undefined || draft.id === null) return []
    if (typeof draft.id !== 'number' || draft.id < 1) throw refused(draft, 'id', 'Must be the id of a lead.')
    return [String(draft.id)]
  }
  const texts =
    type === 'persons' ? (body.emails ?? []).map(({ value }) => value) : [type === 'products' ? body.sku : body.name]
  const keys = texts.flatMap((text) => (typeof text === 'string' ? [fold(text)] : []))
  return action === 'delete' ? keys.slice(0, 1) : keys
}

/** The record of a row; null for a row that makes one. Throws `RowRefused` when there must be one and is not, or are several. */
export async function recordOf(
  ctx: Context,
  { type, action }: { type: Type; action: Action },
  draft: Draft,
  keys: readonly string[],
): Promise<number | null> {
  const column = keyColumns[type][action]
  if (keys.length === 0 && action === 'delete') throw refused(draft, column, 'The field is required.')
  if (keys.length === 0) return null
  const resource = ctx.services.resources.get(type)
  const seen = [...((await resource?.seen(ctx, await idsOf(ctx, type, keys))) ?? [])]
  if (seen.length > 1) throw refused(draft, column, 'These addresses belong to several persons.', 'unique_violation')
  if (seen[0] !== undefined) return seen[0]
  const noun = resource?.noun ?? type
  if (type === 'leads') throw refused(draft, 'id', `No ${noun} has id ${keys[0]}.`, 'not_found')
  if (action === 'delete') throw refused(draft, column, `There is no such ${noun}.`, 'not_found')
  return null
}

async function idsOf(ctx: Context, type: Type, keys: readonly string[]): Promise<number[]> {
  if (type === 'leads') return keys.map(Number)
  if (type === 'persons') return personsWith(ctx, keys)
  const rows =
    type === 'organizations'
      ? ctx.db.selectFrom('organizations').select('id').where('name_key', 'in', keys)
      : ctx.db.selectFrom('products').select('id').where('sku_key', 'in', keys)
  return (await rows.execute()).map(({ id }) => id)
}

/** Ids of the persons with one of the addresses, seen or not. */
const personsWith = async (ctx: Context, keys: readonly string[]): Promise<number[]> => [
  ...new Set([...(await personsByAddress(ctx, keys)).values()].flat()),
]

/** The same by address. */
export async function personsByAddress(ctx: Context, keys: readonly string[]): Promise<Map<string, number[]>> {
  const found = new Map<string, number[]>()
  if (keys.length === 0) return found
  const emails = (await attributeSet(ctx)).system.get('persons')?.find(({ code }) => code === 'emails')
  const attribute = emails?.id ?? 0
  const values = padded(keys)
  const rows = await ask(ctx, {
    name: 'persons: by address',
    values: [attribute, ...values],
    build: () =>
      ctx.db
        .selectFrom('unique_values')
        .select(['value', 'entity_id'])
        .where('entity_type', '=', 'persons')
        .where('attribute_id', '=', attribute)
        .where('value', 'in', values),
  })
  for (const { value, entity_id } of rows) found.set(value, [...(found.get(value) ?? []), entity_id])
  return found
}
