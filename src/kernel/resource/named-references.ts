// References by name: a body may contain `{ "email": "ada@example.com" }` or `{ "name": "Web" }` in
// the place of an id. This module replaces such objects by ids before the body is validated, so
// that handlers see only ids. The keyword `x-reference` of the contract says where names are
// allowed.
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import { nearest } from '../../contract/input/did-you-mean.ts'
import type { NamedReference } from '../../contract/input/normalize.ts'
import type { Finding } from '../../contract/input/validation-errors.ts'
import { assertCanCall, type Context, canCall } from '../context.ts'
import { withoutVisibility } from '../query/visibility.ts'
import { yieldIfDue } from '../runtime/cooperative.ts'
import { foldedPartOf, hasFoldedKey, textKey } from '../values/names.ts'
import type { FindIds, KeyColumn, NamedBy, RecordKey, Resource } from './definition.ts'

export const nameKey: KeyColumn = { column: 'name_key', keyOf: textKey, isFolded: true }
export const skuKey: KeyColumn = { column: 'sku_key', keyOf: textKey }

/** The request that names a record. Its path and its other values may decide what a name means. */
export interface NamingRequest {
  path: string
  params: Record<string, unknown>
  body: unknown
}

/** Returns the id of the record, or a sentence that says why there is none. */
export type FindNamed = (
  ctx: Context,
  named: { key: RecordKey | 'code'; text: string },
  around: NamingRequest & { beside: Record<string, unknown> },
) => Promise<number | string>

export type NamedFinders = Readonly<Record<string, FindNamed>>

/** The largest number of names in one body. */
export const maxNamed = 200

/**
 * Replaces the named references in `request.body` by ids. Returns an error for each name that no
 * visible record or that several have. Throws 403 when the caller may not find such records.
 */
export async function findNamed(
  ctx: Context,
  request: NamingRequest,
  named: readonly NamedReference[],
  finders: NamedFinders,
): Promise<Finding[]> {
  if (named.length > maxNamed)
    return [['body', `Must not have more than ${maxNamed} references by name; send the ids of the others.`]]
  const found: Finding[] = []
  const set = ({ path }: NamedReference, result: number | string): void => {
    if (typeof result === 'string') found.push([path.join('.'), result])
    else parentOf(request.body, path)[path.at(-1) ?? ''] = result
  }
  for (const entity of new Set(named.map((each) => each.entity))) {
    const resource = ctx.services.resources.get(entity)
    if (!resource?.namedBy) continue
    const references = named.filter((each) => each.entity === entity)
    for (const [reference, result] of await resultsOf(ctx, resource, resource.namedBy, references))
      set(reference, result)
  }
  // These may depend on references beside them, such as a stage on its pipeline.
  for (const reference of named) {
    const finder = finders[reference.entity]
    const [[key, text] = []] = Object.entries(reference.value)
    if (!finder || typeof text !== 'string') continue
    const { path, params, body } = request
    const around = { path, params, body, beside: parentOf(body, reference.path) }
    set(reference, await finder(ctx, { key: key as RecordKey, text }, around))
  }
  return found
}

/**
 * Returns the id of the visible record that the object names, or a sentence that says why there is
 * none. Returns null when such records have no such key. Throws 403 when the caller may not find
 * such records. `earlier` is the number of earlier names, because only the first ones have a hint.
 */
export async function findOneNamed(
  ctx: Context,
  entity: string,
  value: Readonly<Record<string, unknown>>,
  earlier: number,
): Promise<number | string | null> {
  const resource = ctx.services.resources.get(entity)
  const [key = '', ...others] = Object.keys(value)
  const text = value[key]
  if (!resource?.namedBy || others.length > 0 || !Object.hasOwn(resource.namedBy.keys, key)) return null
  if (typeof text !== 'string' || text.length > maxLength) return null
  const reference = { entity, path: [], value }
  return (await resultsOf(ctx, resource, resource.namedBy, [reference], earlier)).get(reference) ?? null
}

const maxLength = 255

async function resultsOf(
  caller: Context,
  resource: Resource<unknown, never>,
  { keys, isShown }: NamedBy,
  references: readonly NamedReference[],
  earlier = 0,
): Promise<Map<NamedReference, number | string>> {
  if (!isShown) assertCanCall(caller, resource.listOperation)
  const ctx = isShown ? withoutVisibility(caller) : caller
  const results = new Map<NamedReference, number | string>()
  for (const [key, by] of Object.entries(keys) as [RecordKey, KeyColumn | FindIds][]) {
    const sent = references.filter(({ value }) => typeof value[key] === 'string')
    const textOf = ({ value }: NamedReference): string => String(value[key])
    const found = await visibleByText(ctx, resource, by, new Set(sent.map(textOf)))
    const missing = [...found].filter(([, ids]) => ids.length === 0).map(([text]) => text)
    // A hint compares the name with all others, so only the first unknown names have one.
    const short = key === 'name' ? missing.filter((text) => text.length <= maxHinted) : []
    const hinted = short.slice(0, Math.max(0, maxHints - earlier))
    const known = hinted.length > 0 ? await knownNames(ctx, resource) : []
    for (const each of sent) {
      const [text, ids] = [textOf(each), found.get(textOf(each)) ?? []]
      const names = hinted.includes(text) ? known : []
      results.set(each, ids.length === 1 ? (ids[0] as number) : notOne(resource.noun, key, text, ids, names))
    }
  }
  return results
}

/** Returns the ids of the visible records by text, at most one more than a reply lists. */
async function visibleByText(
  ctx: Context,
  resource: Resource<unknown, never>,
  by: KeyColumn | FindIds,
  texts: ReadonlySet<string>,
): Promise<Map<string, readonly number[]>> {
  if (typeof by === 'function') {
    const found = texts.size === 0 ? new Map<string, number[]>() : await by(ctx, [...texts])
    const visible = await resource.visibleIds(ctx, [...new Set([...found.values()].flat())])
    return new Map([...texts].map((text) => [text, (found.get(text) ?? []).filter((id) => visible.has(id))]))
  }
  const found = new Map<string, readonly number[]>()
  const byKey = new Map<string, readonly number[]>()
  for (const text of texts) {
    const key = by.keyOf(text)
    const ids = byKey.get(key) ?? (await visibleByKey(ctx, resource, by, key))
    byKey.set(key, ids)
    found.set(text, ids)
    await yieldIfDue()
  }
  return found
}

/** Searches among the visible records only, so that no hidden one decides what a name means. */
async function visibleByKey(
  ctx: Context,
  { table, query }: Resource<unknown, never>,
  { column, isFolded }: KeyColumn,
  key: string,
): Promise<number[]> {
  const id = sql.ref<number>(`${table}.id`)
  const at = `${table}.${column}`
  const idsWhere = async (where: RawBuilder<SqlBool>): Promise<number[]> => {
    const visible = (await query(ctx, {})).clearSelect().clearOrderBy()
    const rows = visible
      .select(id.as('id'))
      .where(where)
      .orderBy(id)
      .limit(maxListed + 1)
    return (await rows.execute()).map((row) => row.id)
  }
  const exact = await idsWhere(sql<SqlBool>`${sql.ref(at)} = ${key}`)
  return exact.length > 0 || !isFolded ? exact : idsWhere(hasFoldedKey(at, [foldedPartOf(key)]))
}

const called = { name: 'name', code: 'code', email: 'e-mail address', sku: 'SKU', external_id: 'external id' } as const

/** Returns the error sentence for a name that no record has, or that several have. */
export function notOne(
  noun: string,
  key: RecordKey | 'code',
  text: string,
  ids: readonly number[],
  known: readonly string[],
): string {
  if (ids.length > 0)
    return `Several records have the ${called[key]} ${text}. Send one of the ids ${ids.slice(0, maxListed).join(', ')}.`
  return `No ${noun} has the ${called[key]} ${text}.${nameHint(text, known)}`
}

/** Returns a sentence with the nearest name, or with all names if they are few; else no text. */
export function nameHint(name: string, known: readonly string[]): string {
  const near = nearest(name, known)
  if (near !== undefined) return ` Did you mean \`${near}\`?`
  return known.length > 0 && known.length <= maxListed ? ` Known are ${known.join(', ')}.` : ''
}

const maxListed = 12

/** The largest number of unknown names with a hint, and the largest length of such a name. */
export const [maxHints, maxHinted] = [5, 60]

/** The largest number of records whose names are compared with an unknown name. */
const maxCompared = 500

/**
 * Returns the names of all visible records; none when there are too many to compare, or when the
 * caller may not list them.
 */
async function knownNames(
  ctx: Context,
  { table, visibleIds, listOperation }: Resource<unknown, never>,
): Promise<string[]> {
  if (!canCall(ctx, listOperation)) return []
  const query = sql<{
    id: number
    name: string
  }>`select id, name from ${sql.table(table)} order by id limit ${maxCompared + 1}`
  const { rows } = await query.execute(ctx.db)
  if (rows.length > maxCompared) return []
  const visible = await visibleIds(
    ctx,
    rows.map(({ id }) => id),
  )
  return rows.filter(({ id }) => visible.has(id)).map(({ name }) => name)
}

function parentOf(body: unknown, path: readonly string[]): Record<string, unknown> {
  let at = body
  for (const part of path.slice(0, -1)) at = (at as Record<string, unknown>)[part]
  return at as Record<string, unknown>
}
