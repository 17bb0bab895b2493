// Filters and sorts lists by custom attributes, as in
// `custom_attributes[industry]=3,4` and `sort=-custom_attributes.revenue`.
import { type SqlBool, sql } from 'kysely'
import { splitList } from '../../contract/input/query.ts'
import { didYouMean } from '../../contract/input/validation-errors.ts'
import type { FieldErrors } from '../../contract/output/problems.ts'
import type { Context } from '../../kernel/context.ts'
import { invalid } from '../../kernel/errors.ts'
import { exists, type Fields, type QueryValues } from '../../kernel/query/filter.ts'
import type { SortColumn } from '../../kernel/query/page.ts'
import { type Attribute, customAttributes, type EntityType } from './attribute-set.ts'
import type { Place, ValueType } from './types/value-type.ts'
import { withValueTypes } from './types.ts'

/** The maximum number of values in one filter; filters by built-in fields have the same limit. */
const maxFilterValues = 100

const placeOf = ({ services: { store } }: Context, entity: EntityType, code: string): Place => ({
  dialect: store.dialect,
  column: `${entity}.custom_attributes`,
  code,
})

/**
 * Returns the filter field `custom_attributes`, or no field when the query does not use it. Throws
 * 422 with the errors of all attributes.
 */
export async function attributeFilter(ctx: Context, entity: EntityType, query: QueryValues): Promise<Fields> {
  const sent = query.custom_attributes as Readonly<Record<string, string>> | undefined
  if (sent === undefined) return {}
  const known = new Map(withValueTypes(await customAttributes(ctx, entity)).map((each) => [each.attribute.code, each]))
  const errors: FieldErrors = {}
  const tests: ReturnType<typeof test>[] = []
  for (const [code, text] of Object.entries(sent)) {
    const found = known.get(code)
    const field = `query.custom_attributes[${code}]`
    if (!found) {
      if (ctx.services.config.strict) errors[field] = [`Unknown attribute.${didYouMean(code, known.keys())}`]
      continue
    }
    const read = splitList(text).map((each) => found.type.read?.(each, ctx.services.config.timezone))
    const values = [...new Set(read)]
    if (found.type.matches === undefined) errors[field] = [`A list cannot be filtered by ${found.attribute.type}.`]
    else if (values.includes(undefined)) errors[field] = [`Must be ${found.type.takes}, separated by commas.`]
    else if (values.length > maxFilterValues) errors[field] = [`Must not have more than ${maxFilterValues} entries.`]
    else tests.push(test(ctx, entity, found.attribute, found.type, values as (string | number)[]))
  }
  if (Object.keys(errors).length > 0) throw invalid(errors)
  return { custom_attributes: exists(() => sql<SqlBool>`(${sql.join([sql`1 = 1`, ...tests], sql` and `)})`) }
}

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
