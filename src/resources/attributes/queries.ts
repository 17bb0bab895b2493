// Filters and sorts lists by custom attributes, as in `custom_attributes[industry]=3,4`,
// `custom_attributes[price][gte]=100` and `sort=-custom_attributes.revenue`.
import { type Expression, type SqlBool, sql } from 'kysely'
import { dayBoundary, hasBoundaries, isDateOnly } from '../../contract/input/formats.ts'
import { booleans } from '../../contract/input/normalize.ts'
import { splitList } from '../../contract/input/query.ts'
import { didYouMean } from '../../contract/input/validation-errors.ts'
import type { FieldErrors } from '../../contract/output/problems.ts'
import type { Context } from '../../kernel/context.ts'
import { invalid } from '../../kernel/errors.ts'
import { conditionField, indexedField, type QueryValues } from '../../kernel/query/filter.ts'
import type { SortColumn } from '../../kernel/query/page.ts'
import { type Attribute, customAttributes, type EntityType } from './attribute-set.ts'
import { type Place, textAt, type ValueType } from './types/value-type.ts'
import { withValueTypes } from './types.ts'

/** The maximum number of values in one filter; filters by built-in fields have the same limit. */
const maxFilterValues = 100

const placeOf = ({ services: { store } }: Context, entity: EntityType, code: string): Place => ({
  dialect: store.dialect,
  column: `${entity}.custom_attributes`,
  code,
})

const comparisons = { gt: '>', gte: '>=', lt: '<', lte: '<=' } as const
type Comparison = keyof typeof comparisons

/** One filter: `custom_attributes[size]`, or with an operator, `custom_attributes[size][gte]`. */
interface Filter {
  attribute: Attribute
  type: ValueType
  operator: string
  text: string
}

/**
 * Returns the filter field `custom_attributes`. It throws 422 with the errors of all attributes.
 */
export const attributeFilter = (entity: EntityType) => async (ctx: Context, query: QueryValues) => {
  const sent = query.custom_attributes as Readonly<Record<string, string>>
  const known = new Map(withValueTypes(await customAttributes(ctx, entity)).map((each) => [each.attribute.code, each]))
  const errors: FieldErrors = {}
  const tests: Expression<SqlBool>[] = []
  let isIndexed = false
  for (const [key, text] of Object.entries(sent)) {
    const [code = '', operator = ''] = key.split('][')
    const found = known.get(code)
    const read = found
      ? conditionOf(ctx, entity, { ...found, operator, text })
      : `Unknown attribute.${didYouMean(code, known.keys())}`
    if (typeof read !== 'string') {
      tests.push(read)
      isIndexed ||= operator === '' && found?.attribute.isUnique === true
    }
    // A `where` without one of its conditions could select all records.
    else if (found || ctx.services.config.strict || query.isWhere === true)
      errors[`query.custom_attributes[${key}]`] = [read]
  }
  if (Object.keys(errors).length > 0) throw invalid(errors)
  return (isIndexed ? indexedField : conditionField)(
    () => sql<SqlBool>`(${sql.join([sql`1 = 1`, ...tests], sql` and `)})`,
  )
}

/** Returns the condition of a filter, or the sentence that says why there is none. */
function conditionOf(ctx: Context, entity: EntityType, filter: Filter): Expression<SqlBool> | string {
  const { attribute, type, operator, text } = filter
  const place = placeOf(ctx, entity, attribute.code)
  if (operator === 'null') {
    const wanted = booleans.get(text)
    if (wanted === undefined) return 'Must be true or false.'
    const empty = sql<SqlBool>`coalesce(${textAt(place)}, '[]') = '[]'`
    return wanted ? empty : sql<SqlBool>`not (${empty})`
  }
  if (type.matches === undefined) return `A list cannot be filtered by ${attribute.type}.`
  if (operator === '' || operator === 'not') {
    const values = readValues(ctx, type, splitList(text))
    if (typeof values === 'string') return values
    const matches = test(ctx, entity, attribute, type, values)
    // As with other fields, `not` also matches records without a value.
    return operator === 'not' ? sql<SqlBool>`not coalesce(${matches}, ${flagLiteral(ctx, false)})` : matches
  }
  const operators = ['not', 'null', ...(type.isOrdered ? Object.keys(comparisons) : [])]
  const column = type.sorts?.(place, attribute)
  if (!operators.includes(operator) || column === undefined)
    return `Unknown operator. Filters by ${attribute.type} have ${operators.map((each) => `[${each}]`).join(', ')}.`
  const [bound, ...more] = boundOf(ctx, filter, operator as Comparison)
  if (bound === undefined || more.length > 0) return `Must be one value: ${type.takes}.`
  return sql<SqlBool>`${column} ${sql.raw(comparisons[operator as Comparison])} ${bound}`
}

/** Returns the values of a filter, or the sentence that says what is wrong with them. */
function readValues(ctx: Context, type: ValueType, texts: readonly string[]): (string | number)[] | string {
  const values = new Set(texts.map((each) => type.read?.(each, ctx.services.config.timezone)))
  if (values.has(undefined)) return `Must be ${type.takes}, separated by commas.`
  if (values.size > maxFilterValues) return `Must not have more than ${maxFilterValues} entries.`
  return [...values] as (string | number)[]
}

/** Returns the bound of a range. A date compared with timestamps is the start or end of its day. */
function boundOf(ctx: Context, { attribute, type, text }: Filter, operator: Comparison) {
  const { timezone } = ctx.services.config
  return splitList(text).map((each) =>
    attribute.type === 'datetime' && isDateOnly(each) && hasBoundaries(each, timezone)
      ? dayBoundary(each, timezone, operator === 'lte' || operator === 'gt')
      : type.read?.(each, timezone),
  )
}

const flagLiteral = ({ services: { store } }: Context, value: boolean) => sql.raw(store.dialect.flagLiteral(value))

function test(ctx: Context, entity: EntityType, attribute: Attribute, type: ValueType, values: (string | number)[]) {
  if (values.length === 0) return sql<SqlBool>`1 = 0`
  // Unique values are also in the indexed table unique_values, so this filter avoids a scan of all
  // records.
  if (attribute.isUnique)
    return sql<SqlBool>`${sql.ref(`${entity}.id`)} in (select kept.entity_id from unique_values as kept where kept.entity_type = ${entity} and kept.attribute_id = ${attribute.id} and kept.value in (${sql.join(values.map(String))}))`
  return type.matches?.(placeOf(ctx, entity, attribute.code), values) ?? sql<SqlBool>`1 = 0`
}

const prefix = 'custom_attributes.'

/**
 * Returns the sort columns of the custom attributes, or none if the query does not sort by any. All
 * columns are returned, so that the error for a misspelled name can suggest the right one.
 */
export async function attributeSorts(
  ctx: Context,
  entity: EntityType,
  query: QueryValues,
): Promise<Record<string, SortColumn>> {
  const names = (query.sort as string[] | undefined) ?? []
  if (!names.some((name) => name.replace(/^-/, '').startsWith(prefix))) return {}
  return Object.fromEntries(
    withValueTypes(await customAttributes(ctx, entity)).flatMap(({ attribute, type }): [string, SortColumn][] => {
      const column = type.sorts?.(placeOf(ctx, entity, attribute.code), attribute)
      return column ? [[`${prefix}${attribute.code}`, column]] : []
    }),
  )
}
