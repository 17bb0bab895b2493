// References by name: a body may contain `{ "email": "ada@example.com" }` or `{ "name": "Web" }` in
// the place of an id. This module replaces such objects by ids before the body is validated, so
// that handlers see only ids. The keyword `x-reference` of the contract says where names are
// allowed.
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import { nearest } from '../../contract/input/did-you-mean.ts'
import type { NamedReference } from '../../contract/input/normalize.ts'
import type { Finding } from '../../contract/input/validation-errors.ts'
import { assertCanCall, type Context } from '../context.ts'
import { foldedPartOf, hasFoldedKey, textKey } from '../values/names.ts'
import type { Resource } from './definition.ts'

type Key = 'name' | 'email' | 'sku'

/** Returns the ids of the records by the sent texts. Checks no visibility. */
type FindIds = (ctx: Context, texts: readonly string[]) => Promise<ReadonlyMap<string, readonly number[]>>

export interface NamedBy {
  keys: Partial<Record<Key, FindIds>>
  /**
   * Whether callers may name records that they may not list, because the replies of other types
   * show these names to every caller.
   */
  isShown?: true
}

/** The request that names a record. Its path and its other values may decide what a name means. */
export interface NamingRequest {
  path: string
  params: Record<string, unknown>
  body: unknown
}

/** Returns the id of the record, or a sentence that says why there is none. */
export type FindNamed = (
  ctx: Context,
  name: string,
  around: { path: string; params: Record<string, unknown>; beside: Record<string, unknown> },
) => Promise<number | string>

export type NamedFinders = Readonly<Record<string, FindNamed>>

/**
 * Returns the ids of the records with these name keys (`textKey`), by key. Names that differ only
 * in case come before names that differ in accents, apostrophes or blanks.
 */
export async function idsByNameKey(
  ctx: Pick<Context, 'db'>,
  table: string,
  keys: readonly string[],
): Promise<Map<string, number[]>> {
  const rows = await rowsWhere(ctx, table, 'name_key', hasFoldedKey('name_key', keys.map(foldedPartOf)))
  return new Map(
    keys.map((key) => {
      const exact = rows.filter((row) => row.key === key)
      const like = exact.length > 0 ? exact : rows.filter((row) => foldedPartOf(row.key) === foldedPartOf(key))
      return [key, like.map(({ id }) => id)]
    }),
  )
}

/** Finds records by their names. */
export const byNameKey =
  (table: string): FindIds =>
  async (ctx, texts) => {
    const found = await idsByNameKey(ctx, table, texts.map(textKey))
    return new Map(texts.map((text) => [text, found.get(textKey(text)) ?? []]))
  }

/** Finds records by a key column with whole values, such as `sku_key`. */
export const byKeyColumn =
  (table: string, column: string, keyOf: (text: string) => string = textKey): FindIds =>
  async (ctx, texts) => {
    const keys = new Map(texts.map((text) => [text, keyOf(text)]))
    const rows = await rowsWhere(
      ctx,
      table,
      column,
      sql<SqlBool>`${sql.ref(column)} in (${sql.join([...keys.values()])})`,
    )
    return new Map([...keys].map(([text, key]) => [text, rows.filter((row) => row.key === key).map(({ id }) => id)]))
  }

async function rowsWhere({ db }: Pick<Context, 'db'>, table: string, column: string, where: RawBuilder<SqlBool>) {
  const query = sql<{ id: number; key: string }>`
    select id, ${sql.ref(column)} as key from ${sql.table(table)} where ${where} order by id`
  return (await query.execute(db)).rows
}

/** The largest number of names in one body. */
const maxNamed = 1000

const textsPerQuery = 100

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
    const { name } = reference.value
    if (!finder || typeof name !== 'string') continue
    const { path, params, body } = request
    set(reference, await finder(ctx, name, { path, params, beside: parentOf(body, reference.path) }))
  }
  return found
}

async function resultsOf(
  ctx: Context,
  resource: Resource<unknown, never>,
  { keys, isShown }: NamedBy,
  references: readonly NamedReference[],
): Promise<Map<NamedReference, number | string>> {
  if (!isShown) assertCanCall(ctx, resource.listOperation)
  const results = new Map<NamedReference, number | string>()
  for (const [key, find] of Object.entries(keys) as [Key, FindIds][]) {
    const sent = references.filter(({ value }) => typeof value[key] === 'string')
    const textOf = ({ value }: NamedReference): string => String(value[key])
    const texts = [...new Set(sent.map(textOf))]
    if (texts.length === 0) continue
    const ids = new Map<string, readonly number[]>()
    for (let from = 0; from < texts.length; from += textsPerQuery)
      for (const [text, found] of await find(ctx, texts.slice(from, from + textsPerQuery))) ids.set(text, found)
    const visible = await resource.visibleIds(ctx, [...new Set([...ids.values()].flat())])
    const missing = texts.filter((text) => !ids.get(text)?.some((id) => visible.has(id)))
    const known = missing.length > 0 && key === 'name' ? await knownNames(ctx, resource) : []
    for (const each of sent) {
      const fitting = (ids.get(textOf(each)) ?? []).filter((id) => visible.has(id))
      results.set(
        each,
        fitting.length === 1 ? (fitting[0] as number) : notOne(resource.noun, key, textOf(each), fitting, known),
      )
    }
  }
  return results
}

const called = { name: 'name', email: 'e-mail address', sku: 'SKU' } as const

/** Returns the error sentence for a name that no record has, or that several have. */
export function notOne(noun: string, key: Key, text: string, ids: readonly number[], known: readonly string[]): string {
  if (ids.length > 0)
    return `Several records have the ${called[key]} ${text}. Send one of the ids ${ids.slice(0, maxListed).join(', ')}.`
  const near = nearest(text, known)
  const hint =
    near !== undefined
      ? ` Did you mean \`${near}\`?`
      : known.length > 0 && known.length <= maxListed
        ? ` Known are ${known.join(', ')}.`
        : ''
  return `No ${noun} has the ${called[key]} ${text}.${hint}`
}

const maxListed = 12

/** The largest number of records whose names are compared with an unknown name. */
const maxCompared = 500

/** Returns the names of all visible records; none when there are too many to compare. */
async function knownNames(ctx: Context, { table, visibleIds }: Resource<unknown, never>): Promise<string[]> {
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
