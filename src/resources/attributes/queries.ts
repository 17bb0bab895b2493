// Lists by custom attributes (DOMAIN 5.2, 5.3): `custom_attributes[industry]=3,4` and `sort=-custom_attributes.revenue`.
import { type SqlBool, sql } from 'kysely'
import { splitList } from '../../contract/input/query.ts'
import { didYouMean } from '../../contract/input/validation-errors.ts'
import type { FieldErrors } from '../../contract/output/problems.ts'
import type { Context } from '../../kernel/context.ts'
import { invalid } from '../../kernel/errors.ts'
import { exists, type Fields, type Query } from '../../kernel/query/filter.ts'
import type { SortColumn } from '../../kernel/query/page.ts'
import { type Attribute, type EntityType, ownAttributes } from './set.ts'
import type { Place, ValueType } from './types/type.ts'
import { valued } from './types.ts'

/** As many values as any other filter takes. */
const most = 100

const placeOf = ({ services: { store } }: Context, entity: EntityType, code: string): Place => ({
  dialect: store.dialect,
  column: `${entity}.custom_attributes`,
  code,
})

/** The field `custom_attributes` of a list. Throws 422 with all that is wrong, by `query.custom_attributes[code]`. */
export async function attributeFilter(ctx: Context, entity: EntityType, query: Query): Promise<Fields> {
  const sent = query.custom_attributes as Readonly<Record<string, string>> | undefined
  if (sent === undefined) return {}
  const known = new Map(valued(await ownAttributes(ctx, entity)).map((each) => [each.attribute.code, each]))
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
    else if (values.length > most) errors[field] = [`Must not have more than ${most} entries.`]
    else tests.push(test(ctx, entity, found.attribute, found.type, values as (string | number)[]))
  }
  if (Object.keys(errors).length > 0) throw invalid(errors)
  return { custom_attributes: exists(() => sql<SqlBool>`(${sql.join([sql`1 = 1`, ...tests], sql` and `)})`) }
}

function test(ctx: Context, entity: EntityType, attribute: Attribute, type: ValueType, values: (string | number)[]) {
  if (values.length === 0) return sql<SqlBool>`1 = 0`
  // What must be unique is kept apart, and found there without looking at every record.
  if (attribute.isUnique)
    return sql<SqlBool>`${sql.ref(`${entity}.id`)} in (select kept.entity_id from unique_values as kept where kept.entity_type = ${entity} and kept.attribute_id = ${attribute.id} and kept.value in (${sql.join(values.map(String))}))`
  return type.matches?.(placeOf(ctx, entity, attribute.code), values) ?? sql<SqlBool>`1 = 0`
}

const prefix = 'custom_attributes.'

/** The sort keys that the query asks for, or all there are when it names one that is none, for the hint. */
export async function attributeSorts(
  ctx: Context,
  entity: EntityType,
  query: Query,
): Promise<Record<string, SortColumn>> {
  const names = (query.sort as string[] | undefined) ?? []
  if (!names.some((name) => name.replace(/^-/, '').startsWith(prefix))) return {}
  return Object.fromEntries(
    valued(await ownAttributes(ctx, entity)).flatMap(({ attribute, type }): [string, SortColumn][] => {
      const column = type.sorts?.(placeOf(ctx, entity, attribute.code), attribute)
      return column ? [[`${prefix}${attribute.code}`, column]] : []
    }),
  )
}
