// Contact points of a person: cleaned on the way in, unique over all persons by a row in unique_values each (DOMAIN 3.2,
// 8.3, 10.1).
import { type SqlBool, sql } from 'kysely'
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import type { Findings } from '../../kernel/errors.ts'
import { exists, type Field } from '../../kernel/filter.ts'
import { fold, phoneKey } from '../../kernel/format.ts'

type Point = Schema<'ContactPoint'>
type Sent = readonly { value: string | null; label?: string | null }[]

/** The contact fields, and the form in which their values are compared. */
export const contactFields = { emails: fold, contact_numbers: phoneKey } as const
export type ContactField = keyof typeof contactFields

/** Entries without a value are dropped, a missing label is `work`; a value that occurs twice is found. */
export function cleanPoints(field: ContactField, sent: Sent | undefined, found: Findings): Point[] | undefined {
  if (sent === undefined) return undefined
  const seen = new Set<string>()
  const points: Point[] = []
  for (const [index, { value, label }] of sent.entries()) {
    if (value === null) continue
    const key = contactFields[field](value)
    if (seen.has(key)) found.invalid(`${field}.${index}.value`, 'This value occurs twice.')
    seen.add(key)
    points.push({ value, label: label ?? 'work' })
  }
  if (field === 'emails' && points.length === 0) found.invalid('emails', 'The field is required.')
  return points
}

/** The PersonRef of a stored person. */
export const personRef = (id: number, name: string, emails: string): Schema<'PersonRef'> => ({
  id,
  name,
  email: (JSON.parse(emails) as Point[])[0]?.value ?? null,
})

const attributeId = (field: ContactField) =>
  sql<number>`(select id from attributes where entity_type = 'persons' and code = ${field})`

/** Finds values that another person has. The other's id is told only to callers who may see that person. */
export async function checkUnique(
  ctx: Context,
  field: ContactField,
  sent: Sent | undefined,
  self: number | null,
  found: Findings,
  seen: (ids: number[]) => Promise<Set<number>>,
): Promise<void> {
  if (!sent || sent.length === 0) return
  const keys = sent.map(({ value }) => (value === null ? '' : contactFields[field](value)))
  const taken = await ctx.db
    .selectFrom('unique_values')
    .select(['value', 'entity_id'])
    .where('entity_type', '=', 'persons')
    .where('attribute_id', '=', attributeId(field))
    .where('value', 'in', [...new Set(keys)])
    .execute()
  const others = taken.filter(({ entity_id }) => entity_id !== self)
  const visible = await seen(others.map(({ entity_id }) => entity_id))
  for (const [index, key] of keys.entries()) {
    const other = others.find(({ value }) => value === key)
    if (other)
      found.taken(
        `${field}.${index}.value`,
        'persons',
        visible.has(other.entity_id) ? other.entity_id : null,
        'Another person has this value.',
      )
  }
}

/** Makes the rows of unique_values those of the person's points. */
export async function keepUnique(ctx: Context, id: number, field: ContactField, sent: Sent | undefined): Promise<void> {
  if (sent === undefined) return
  const keys = [...new Set(sent.flatMap(({ value }) => (value === null ? [] : [contactFields[field](value)])))]
  await ctx.db
    .deleteFrom('unique_values')
    .where('entity_type', '=', 'persons')
    .where('entity_id', '=', id)
    .where('attribute_id', '=', attributeId(field))
    .execute()
  for (const key of keys) {
    await ctx.db
      .insertInto('unique_values')
      .values({ entity_type: 'persons', attribute_id: attributeId(field), value: key, entity_id: id })
      .execute()
  }
}

export const forgetUnique = async (ctx: Context, id: number): Promise<void> => {
  await ctx.db.deleteFrom('unique_values').where('entity_type', '=', 'persons').where('entity_id', '=', id).execute()
}

/** The filter `email=` or `phone=`: an indexed look-up of whole values. */
export const contactFilter = (field: ContactField): Field =>
  exists((values) => {
    const keys = values.map((value) => contactFields[field](String(value)))
    return sql<SqlBool>`exists (select 1 from unique_values as point where point.entity_type = 'persons' and point.entity_id = persons.id and point.attribute_id = ${attributeId(field)} and point.value in (${sql.join(keys)}))`
  })
