// Turns the filters of a list into SQL conditions: `field`, `field[not]`,
// `field[null]`, `field[gt|gte|lt|lte]` and `q`. The contract lists the filters of each operation.
// A slice maps each field to a column. Query parameters and the `where` of a query become the same
// tree, which `compile` turns into SQL.
import { type Expression, type RawBuilder, type SqlBool, sql } from 'kysely'
import type { Dialect } from '../../../db/dialect.ts'
import { documentIdOf } from '../../../db/search/document-ids.ts'
import { canonicalTime, dayBoundary, isDateOnly } from '../../contract/input/formats.ts'
import type { Context } from '../context.ts'
import { addressKey } from '../values/format.ts'
import { toScaled } from '../values/money.ts'
import { queryParts, searchFold, searchPhrase, textKey } from '../values/names.ts'

type Condition = Expression<SqlBool>

/**
 * How the database stores a filter field. For `text`, the column is a `_key` column, which contains
 * the normalized text. For `condition`, `where` builds the condition for a list of values; for
 * `flagCondition`, `where` builds the condition for true or false. `isIndexed` says that an index
 * finds the rows of the values, as it does for every column of the list's own table.
 */
export type FilterField =
  | { kind: 'value' | 'text' | 'money' | 'time' | 'flag'; column: string }
  | { kind: 'folded'; column: string }
  | { kind: 'condition'; where: (values: (string | number)[]) => Condition; isIndexed?: true }
  | { kind: 'flagCondition'; where: (wanted: boolean) => Condition }

export const valueField = (column: string): FilterField => ({ kind: 'value', column })
/** Compares a name without case. The column contains `textKey` of the name. */
export const textField = (column: string): FilterField => ({ kind: 'text', column })
/** Compares an address without case. The column contains `addressKey` of the address. */
export const foldedField = (column: string): FilterField => ({ kind: 'folded', column })
export const moneyField = (column: string): FilterField => ({ kind: 'money', column })
export const timeField = (column: string): FilterField => ({ kind: 'time', column })
export const flagField = (column: string): FilterField => ({ kind: 'flag', column })
export const conditionField = (where: (values: (string | number)[]) => Condition): FilterField => ({
  kind: 'condition',
  where,
})
/** A condition whose rows an index finds. */
export const indexedField = (where: (values: (string | number)[]) => Condition): FilterField => ({
  kind: 'condition',
  isIndexed: true,
  where,
})
export const flagConditionField = (where: (wanted: boolean) => Condition): FilterField => ({
  kind: 'flagCondition',
  where,
})

export type Fields = Record<string, FilterField>
/** A filter field, or a function that returns it, for a filter that depends on the call. */
export type FilterSource = FilterField | ((ctx: Context, query: QueryValues) => FilterField | Promise<FilterField>)
export type QueryValues = Readonly<Record<string, unknown>>

/** A test of one field. `operator` is that of a query parameter, or one of a `where`. */
export interface Leaf {
  field: FilterField
  operator: string
  value: unknown
}

/** The conditions of a request, before they become SQL. A `condition` is SQL already. */
export type Tree = Leaf | { condition: Condition } | { all: Tree[] } | { any: Tree[] } | { none: Tree[] }

/** Returns the SQL of a tree. `none` also selects rows whose tests yield null. */
export function compile(ctx: Context, tree: Tree): Condition {
  if ('condition' in tree) return tree.condition
  if ('field' in tree) return condition(ctx, tree)
  const parts = ('all' in tree ? tree.all : 'any' in tree ? tree.any : tree.none).map((each) => compile(ctx, each))
  if ('all' in tree) return sql<SqlBool>`(${sql.join([sql`1 = 1`, ...parts], sql` and `)})`
  const any = sql<SqlBool>`(${sql.join([sql`1 = 0`, ...parts], sql` or `)})`
  return 'any' in tree ? any : sql<SqlBool>`(${any} is not true)`
}

const operators = { gt: '>', gte: '>=', lt: '<', lte: '<=' } as const

/**
 * Returns the conditions for all filters in the query. Ignores parameters that are neither `q` nor
 * in `fields`, such as `page` and `sort`. By default the conditions of `q` find rows by the search
 * index. Others test the rows that a scan reads, or those whose ids `searchCandidates` found.
 */
export function conditions(
  ctx: Context,
  query: QueryValues,
  fields: Fields,
  search: readonly SearchField[],
  rows: 'any' | 'scanned' | 'found' = 'any',
): Condition[] {
  const found: Condition[] = []
  for (const [parameter, sent] of Object.entries(query)) {
    if (parameter === 'q' && typeof sent === 'string') {
      const asked = queryParts(sent)
      const texts = asked.map((word) => contains(ctx, word, search))
      const test = rows === 'any' ? null : indexTest(ctx, asked, search)
      const all =
        test === null
          ? [...candidates(ctx, asked, search, rows !== 'any'), ...texts]
          : rows === 'found'
            ? texts
            : [whenMet(test, texts)]
      const whole = search.flatMap((field) => ('whole' in field ? (field.whole(sent, ctx) ?? []) : []))
      if (whole.length === 0) found.push(...all)
      else found.push(sql<SqlBool>`(${sql.join(whole, sql` or `)} or (${sql.join(all, sql` and `)}))`)
      continue
    }
    const leaf = leafOf(parameter, sent, fields)
    if (leaf) found.push(compile(ctx, leaf))
  }
  return found
}

/** Returns the test of a query parameter; undefined for one that tests no field. */
export function leafOf(parameter: string, value: unknown, fields: Fields): Leaf | undefined {
  const [, name = '', operator = ''] = /^([a-z_]+)(?:\[([a-z]+)\])?$/.exec(parameter) ?? []
  const field = Object.hasOwn(fields, name) ? fields[name] : undefined
  return field && { field, operator, value }
}

function condition(ctx: Context, { field, operator, value: sent }: Leaf): Condition {
  if (field.kind === 'flagCondition') return field.where((sent === true) !== (operator === 'not'))
  if (field.kind === 'condition') {
    const values = [sent].flat() as (string | number)[]
    if (values.length === 0) return operator === 'not' ? sql<SqlBool>`1 = 1` : sql<SqlBool>`1 = 0`
    const matches = field.where(values)
    return operator === 'not' ? sql<SqlBool>`not (${matches})` : matches
  }
  const column = sql.ref(field.column)
  if (operator === 'null') return sent === true ? sql<SqlBool>`${column} is null` : sql<SqlBool>`${column} is not null`
  if (operator === '' || operator === 'not') {
    const values = [sent].flat().map((each) => stored(field, each))
    if (values.length === 0) return operator === 'not' ? sql<SqlBool>`1 = 1` : sql<SqlBool>`1 = 0`
    const within = sql<SqlBool>`${column} in (${sql.join(values)})`
    // The operator `not` also matches rows without a value.
    return operator === 'not' ? sql<SqlBool>`(${column} is null or not (${within}))` : within
  }
  if (operator === 'contains') return sql<SqlBool>`${column} like ${likePattern(searchFold(String(sent)))} escape '\\'`
  if (operator === 'starts_with') {
    const start = searchFold(String(sent))
    return sql<SqlBool>`(${column} >= ${start} and ${column} < ${start + lastCharacter})`
  }
  const sign = sql.raw(operators[operator as keyof typeof operators])
  if (field.kind === 'time') {
    const { timezone } = ctx.services.config
    const said = String(sent)
    const moment = isDateOnly(said)
      ? dayBoundary(said, timezone, operator === 'lte' || operator === 'gt')
      : canonicalTime(said, timezone)
    return sql<SqlBool>`${column} ${sign} ${moment}`
  }
  return sql<SqlBool>`${column} ${sign} ${stored(field, sent)}`
}

/** It sorts behind every character of a key. */
const lastCharacter = '\u{10ffff}'

function stored(field: FilterField, sent: unknown): string | number {
  if (field.kind === 'text') return textKey(String(sent))
  if (field.kind === 'folded') return addressKey(String(sent))
  if (field.kind === 'money') return toScaled(Number(sent))
  if (typeof sent === 'boolean') return sent ? 1 : 0
  return typeof sent === 'number' ? sent : String(sent)
}

/**
 * A field that `q` searches. `key` is a `_key` column, `text` is any text column, and `where`
 * builds a condition for one word. `indexed` is an entity of the search index, which limits the
 * rows to candidates. `whole` gets the whole search text and may add matches.
 */
export type SearchField =
  | { key: string }
  | { text: string }
  | { where: (word: string, dialect: Dialect, ctx: Context) => Condition }
  | { indexed: string }
  | { whole: (asked: string, ctx: Context) => Condition | null }

/** Returns a LIKE pattern that finds a word anywhere in a text. The escape character is `\`. */
export const likePattern = (word: string): string => `%${word.replace(/[\\%_]/g, '\\$&')}%`

function contains(ctx: Context, word: string, search: readonly SearchField[]): Condition {
  const pattern = likePattern(word)
  const { dialect } = ctx.services.store
  const tests = search.flatMap((field): Condition[] => {
    if ('indexed' in field || 'whole' in field) return []
    if ('where' in field) return [field.where(word, dialect, ctx)]
    const column = 'key' in field ? sql.ref(field.key) : dialect.searchFold(sql.ref(field.text))
    return [sql<SqlBool>`${column} like ${pattern} escape '\\'`]
  })
  return sql<SqlBool>`(${sql.join(tests, sql` or `)})`
}

/**
 * Returns a subquery of the ids of the rows that `q` may select, from the search index. Returns
 * null without `q`, for a list without a search index, and for a search that finds rows in other
 * ways, too.
 */
export function searchCandidates(ctx: Context, { q }: QueryValues, search: readonly SearchField[]) {
  const entity = search.flatMap((field) => ('indexed' in field ? field.indexed : []))[0]
  if (typeof q !== 'string' || entity === undefined) return null
  if (search.some((field) => 'whole' in field && field.whole(q, ctx) !== null)) return null
  const asked = queryParts(q)
  return (
    ctx.services.store.dialect.fullText.candidates('search_index', entity, asked, shortPhrases(asked)) ??
    begun(ctx, entity, asked)
  )
}

/**
 * Returns the conditions that the search index adds to those of the texts. A word of one or two
 * letters matches only the beginning of a word. For longer words the index only narrows the rows,
 * so a test of rows that were found in another way needs no index.
 */
function candidates(
  ctx: Context,
  asked: readonly string[],
  search: readonly SearchField[],
  isTest: boolean,
): Condition[] {
  const { fullText } = ctx.services.store.dialect
  return search.flatMap((field) => {
    if (!('indexed' in field)) return []
    const id = sql.ref(`${field.indexed}.id`)
    const found = isTest ? null : fullText.candidates('search_index', field.indexed, asked, shortPhrases(asked))
    const beginning = begun(ctx, field.indexed, asked)
    // The unary plus keeps a database from finding the rows by a condition that only tests them.
    return [
      ...(beginning ? [sql<SqlBool>`${isTest ? sql`+${id}` : id} in (${beginning})`] : []),
      ...(found ? [sql<SqlBool>`${id} in (${found})`] : []),
    ]
  })
}

/** Returns the condition on the search index, for an engine that tests it faster than texts. */
function indexTest(
  { services }: Context,
  pieces: readonly string[],
  search: readonly SearchField[],
  id?: Expression<unknown>,
): Condition | null {
  const { test } = services.store.dialect.fullText
  const entity = search.flatMap((field) => ('indexed' in field ? field.indexed : []))[0]
  if (test === null || entity === undefined || pieces.length === 0) return null
  const document = documentIdOf(entity, id ?? sql.ref(`${entity}.id`))
  return test('search_index', document, { pieces, phrases: shortPhrases(pieces) })
}

/**
 * Returns the condition that `searchCandidates` has an id, for an engine whose search index tests
 * one record. Returns null in the same cases.
 */
export const isCandidate = (
  ctx: Context,
  query: QueryValues,
  search: readonly SearchField[],
  id: Expression<unknown>,
): Condition | null => searchCandidates(ctx, query, search) && indexTest(ctx, queryParts(String(query.q)), search, id)

/** Returns a condition that the database tests first, and the others only for rows that meet it. */
const whenMet = (first: Condition, others: readonly Condition[]): Condition =>
  sql<SqlBool>`case when ${first} then ${sql.join(others, sql` and `)} else false end`

const shortPhrases = (asked: readonly string[]): string[] =>
  asked.filter(isShort).flatMap((word) => searchPhrase(word) || [])

const begun = ({ services }: Context, entity: string, asked: readonly string[]) =>
  services.store.dialect.fullText.beginnings('search_index', entity, shortPhrases(asked))

/** The search index has no trigrams of such a word. */
const isShort = (word: string): boolean => [...word].length < 3

/**
 * Returns a filter field for linked records, such as tags. `table` is the link table: each of its
 * rows links a record to one value. The condition starts at the link table, whose database index
 * finds the records of a value.
 */
export function linkedField(table: string, owner: string, ownerColumn: string, valueColumn: string): FilterField {
  return indexedField(
    (values) =>
      sql<SqlBool>`${sql.ref(owner)} in (select ${sql.ref(`link.${ownerColumn}`)} from ${sql.table(table)} as link where ${sql.ref(`link.${valueColumn}`)} in (${sql.join(values)}))`,
  )
}

/** Returns the id of an imported record, or of that into which it was merged, and the tables. */
export const importedId = (noun?: string): RawBuilder<unknown> =>
  noun === undefined
    ? sql`link.record_id from import_records as link`
    : sql`coalesce(merge.${sql.ref(`${noun}_id`)}, link.record_id) from import_records as link
        left join ${sql.table(`${noun}_merges`)} as merge on merge.merged_id = link.record_id`

/**
 * Filters the records of an entity by the imports that created or changed them, or a record that
 * was merged into them. `noun` is that of a type whose records can be merged.
 */
export const importedField = (entity: string, noun?: string): FilterField =>
  indexedField(
    (imports) =>
      sql<SqlBool>`${sql.ref(`${entity}.id`)} in (select ${importedId(noun)}
        where link.import_id in (${sql.join(imports)}) and link.entity_type = ${entity} and link.did in ('created', 'updated'))`,
  )
