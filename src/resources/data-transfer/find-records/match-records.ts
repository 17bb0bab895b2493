// Finds the record of a row. A record with an external id of the row matches first. Otherwise
// organizations match by name, products by SKU, and leads by id. Persons match by e-mail address;
// rows without an address match by telephone number and name. Records that the import's user cannot
// see never match, and their unique values are refused as taken.
import { phoneKeys } from '../../../../db/schema/phone-numbers.ts'
import type { Context } from '../../../kernel/context.ts'
import { externalIdText } from '../../../kernel/resource/external-ids.ts'
import { addressKey } from '../../../kernel/values/format.ts'
import { hasFoldedKey, searchFold, textKey } from '../../../kernel/values/names.ts'
import { organizationsLike } from '../../organizations/resource.ts'
import { personsByAddress } from '../../persons/contacts.ts'
import { type RowDraft, rowRefused } from '../draft-rows/row-drafts.ts'
import { keyColumns } from '../map-columns/columns.ts'
import type { ImportAction, ImportType } from '../settings.ts'

interface MatchFields {
  external_ids?: Readonly<Record<string, string | null>> | null
  emails?: readonly { value: string | null }[] | null
  contact_numbers?: readonly { value: string | null }[] | null
  name?: string | null
  sku?: string | null
}

const externalPrefix = 'external:'
const isExternal = (key: string): boolean => key.startsWith(externalPrefix)

/**
 * Returns the match keys of a row: its external ids, and the keys by which records of its type
 * match without them. A row without match keys creates a record.
 */
export function matchKeysOf(
  ctx: Context,
  settings: { type: ImportType; action: ImportAction },
  draft: RowDraft,
  body: MatchFields,
): string[] {
  // A cell without external ids is still a text, which the schema refuses.
  const ids = typeof body.external_ids === 'object' ? Object.entries(body.external_ids ?? {}) : []
  const external = ids.flatMap(([source, id]) => (id === null ? [] : [externalPrefix + externalIdText(source, id)]))
  return [...external, ...ownKeysOf(ctx, settings, draft, body)]
}

function ownKeysOf(
  ctx: Context,
  { type, action }: { type: ImportType; action: ImportAction },
  draft: RowDraft,
  body: MatchFields,
): string[] {
  if (type === 'leads') {
    if (draft.id === undefined || draft.id === null) return []
    if (typeof draft.id !== 'number' || draft.id < 1) throw rowRefused(draft, 'id', 'Must be the id of a lead.')
    return [String(draft.id)]
  }
  const texts =
    type === 'persons' ? (body.emails ?? []).map(({ value }) => value) : [type === 'products' ? body.sku : body.name]
  const keyOf = type === 'persons' ? addressKey : textKey
  const keys = texts.flatMap((text) => (typeof text === 'string' ? [keyOf(text)] : []))
  if (action === 'delete') return keys.slice(0, 1)
  return type === 'persons' && keys.length === 0 ? numberKeys(ctx, body, [body.name]) : keys
}

const numberPrefix = 'tel:'

/**
 * Returns the match keys from telephone numbers, one for each of the names. Several persons can
 * share a number, so the keys include the name of the row, if it has one.
 */
const numberKeys = (
  { services }: Context,
  { contact_numbers }: MatchFields,
  names: readonly (string | null | undefined)[],
): string[] => {
  const numbers = (contact_numbers ?? []).flatMap(({ value }) =>
    value ? phoneKeys(value, services.config.country) : [],
  )
  return names.flatMap((name) => numbers.map((number) => `${numberPrefix}${number} ${searchFold(name ?? '')}`))
}

/** Returns all keys by which later rows can match the record of this row. */
export function laterMatchKeys(ctx: Context, type: ImportType, keys: readonly string[], body: MatchFields): string[] {
  if (type !== 'persons') return [...keys]
  return [...new Set([...keys, ...numberKeys(ctx, body, [body.name, null])])]
}

/**
 * Returns the id of the row's record, or null when the row creates a record. Throws `ImportStop`
 * when a required record does not exist, or when several records match.
 */
export async function findRecord(
  ctx: Context,
  { type, action }: { type: ImportType; action: ImportAction },
  draft: RowDraft,
  keys: readonly string[],
): Promise<number | null> {
  const resource = ctx.services.resources.get(type)
  const seenOf = async (ids: readonly number[]): Promise<number[]> => [
    ...((await resource?.visibleIds(ctx, ids)) ?? []),
  ]
  const external = keys.filter(isExternal).map((key) => key.slice(externalPrefix.length))
  const byExternal = await seenOf(external.length > 0 ? await idsByExternalId(ctx, type, external) : [])
  if (byExternal.length > 1)
    throw rowRefused(draft, 'external_ids', 'These external ids belong to several records.', 'unique_violation')
  if (byExternal[0] !== undefined) return byExternal[0]
  return findByOwnKey(
    ctx,
    { type, action },
    draft,
    keys.filter((key) => !isExternal(key)),
    seenOf,
  )
}

async function findByOwnKey(
  ctx: Context,
  { type, action }: { type: ImportType; action: ImportAction },
  draft: RowDraft,
  keys: readonly string[],
  seenOf: (ids: readonly number[]) => Promise<number[]>,
): Promise<number | null> {
  const column = keyColumns[type][action]
  if (keys.length === 0 && action === 'delete') throw rowRefused(draft, column, 'The field is required.')
  if (keys.length === 0) return null
  const seen = await seenOf(await idsOf(ctx, type, keys))
  if (seen.length > 1)
    throw rowRefused(draft, isNumber(keys) ? 'contact_numbers' : column, ambiguous(type, keys), 'unique_violation')
  if (seen[0] !== undefined) return seen[0]
  const noun = ctx.services.resources.get(type)?.noun ?? type
  if (type === 'leads') throw rowRefused(draft, 'id', `No ${noun} has id ${keys[0]}.`, 'not_found')
  if (action === 'delete') throw rowRefused(draft, column, `There is no such ${noun}.`, 'not_found')
  return null
}

/** Returns the ids of the records with one of these external ids, without a visibility check. */
async function idsByExternalId(ctx: Context, type: ImportType, texts: readonly string[]): Promise<number[]> {
  const find = ctx.services.resources.get(type)?.namedBy?.keys.external_id
  if (typeof find !== 'function') return []
  return [...new Set([...(await find(ctx, texts)).values()].flat())]
}

async function idsOf(ctx: Context, type: ImportType, keys: readonly string[]): Promise<number[]> {
  if (type === 'leads') return keys.map(Number)
  if (type === 'persons') return personsWith(ctx, keys)
  // An organization has one key.
  if (type === 'organizations') return (await organizationsLike(ctx, keys[0] ?? '')).map(({ id }) => id)
  const rows = await ctx.db.selectFrom('products').select('id').where('sku_key', 'in', keys).execute()
  return rows.map(({ id }) => id)
}

const isNumber = (keys: readonly string[]): boolean => keys[0]?.startsWith(numberPrefix) ?? false

const ambiguous = (type: ImportType, keys: readonly string[]): string =>
  isNumber(keys)
    ? 'Several persons have this number; say which by an e-mail address.'
    : type === 'persons'
      ? 'These addresses belong to several persons.'
      : 'Several records have such a name.'

/**
 * Returns the ids of persons with one of these addresses or numbers, without a visibility check.
 */
async function personsWith(ctx: Context, keys: readonly string[]): Promise<number[]> {
  if (isNumber(keys)) return personsByNumber(ctx, keys)
  return [...new Set([...(await personsByAddress(ctx, keys)).values()].flat())]
}

async function personsByNumber({ db }: Context, keys: readonly string[]): Promise<number[]> {
  const found = new Set<number>()
  for (const key of keys) {
    const [number = '', ...name] = key.slice(numberPrefix.length).split(' ')
    let rows = db
      .selectFrom('person_numbers')
      .innerJoin('persons', 'persons.id', 'person_numbers.person_id')
      .select('persons.id')
      .where('person_numbers.number', '=', number)
    if (name.join(' ') !== '') rows = rows.where(hasFoldedKey('persons.name_key', [name.join(' ')]))
    for (const { id } of await rows.execute()) found.add(id)
  }
  return [...found]
}
