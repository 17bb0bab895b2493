// E-mail addresses and phone numbers of persons and warehouses. The
// table unique_values contains the values that must be unique among the records of an entity.
import { type SqlBool, sql } from 'kysely'
import { type Bound, cachedQuery } from '../../../db/cached-query.ts'
import { phoneKeys } from '../../../db/schema/phone-numbers.ts'
import { digitsOf } from '../../../db/schema/search-folding.ts'
import type { Db } from '../../../db/store.ts'
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { ValidationErrors } from '../../kernel/errors.ts'
import { conditionField, type FilterField, indexedField } from '../../kernel/query/filter.ts'
import type { OnRestore } from '../../kernel/resource/definition.ts'
import { addressKey, fold } from '../../kernel/values/format.ts'
import { type Attribute, attributeSet } from '../attributes/attribute-set.ts'
import { toPoints as cleaned } from '../attributes/types/contact-points.ts'
import { checkUniqueKeys, saveUniqueKeys } from '../attributes/unique-keys.ts'
import { hasPhoneNumber } from './phone-numbers.ts'

type Point = Schema<'ContactPoint'>
type Sent = readonly { value: string | null; label?: string | null }[]

/** Maps each contact field to the function that normalizes its values for comparison. */
export const contactFields = { emails: addressKey, contact_emails: addressKey, contact_numbers: digitsOf } as const
export type ContactField = keyof typeof contactFields
type Owner = 'persons' | 'warehouses'

const required: ReadonlySet<ContactField> = new Set(['contact_emails'])

/**
 * Returns the entries with a value. An entry without a label gets the label `work`. Adds an error
 * for each duplicate value, and for a required field without values.
 */
export function cleanContactPoints(
  field: ContactField,
  sent: Sent | undefined,
  errors: ValidationErrors,
): Point[] | undefined {
  if (sent === undefined) return undefined
  const points = cleaned(sent, contactFields[field], (at, sentence) => errors.invalid(`${field}.${at}`, sentence))
  if (required.has(field) && points.length === 0) errors.invalid(field, 'The field is required.')
  return points
}

/** Returns the reference to a person (PersonRef) from its stored columns. */
export const personRef = (id: number, name: string, emails: string): Schema<'PersonRef'> => ({
  id,
  name,
  email: (JSON.parse(emails) as Point[])[0]?.value ?? null,
})

/**
 * Returns the built-in attribute of a contact field. The attribute defines whether the values must
 * be unique.
 */
async function attributeOf(ctx: Context, owner: Owner, field: ContactField): Promise<Attribute> {
  const found = (await attributeSet(ctx)).system.get(owner)?.find(({ code }) => code === field)
  if (!found) throw new Error(`${owner} have no built-in attribute ${field}.`)
  return found
}

/**
 * Adds an error for each value that another record already has. The error contains the id of the
 * other record only if the caller may see that record.
 */
export async function checkUniquePoints(
  ctx: Context,
  owner: Owner,
  field: ContactField,
  sent: Sent | undefined,
  self: number | null,
  errors: ValidationErrors,
): Promise<void> {
  const attribute = await attributeOf(ctx, owner, field)
  if (!sent || !attribute.isUnique) return
  await checkUniqueKeys({ ctx, errors }, attribute, self, field, keysOf(field, sent))
}

const keysOf = (field: ContactField, sent: Sent): { key: string; at: string }[] =>
  sent.flatMap(({ value }, index) =>
    value === null ? [] : [{ key: contactFields[field](value), at: `${index}.value` }],
  )

/**
 * Replaces the record's rows in unique_values with the values of the request body. Does nothing
 * when the body does not contain the field.
 */
export async function saveUniquePoints(
  ctx: Context,
  owner: Owner,
  id: number,
  field: ContactField,
  sent: Sent | undefined,
): Promise<void> {
  if (sent === undefined) return
  const attribute = await attributeOf(ctx, owner, field)
  const keys = attribute.isUnique ? keysOf(field, sent) : []
  await saveUniqueKeys(ctx, attribute, id, keys)
}

/**
 * Checks and stores the unique values of a restored person. Throws 422 when another person has
 * taken a value in the meantime.
 */
export const repairPerson: OnRestore = async (ctx, { row }) => {
  const id = Number(row.id)
  const errors = new ValidationErrors()
  const points = (['emails', 'contact_numbers'] as const).map(
    (field) => [field, JSON.parse(String(row[field])) as Point[]] as const,
  )
  for (const [field, sent] of points) await checkUniquePoints(ctx, 'persons', field, sent, id, errors)
  errors.throwIfAny()
  for (const [field, sent] of points) await saveUniquePoints(ctx, 'persons', id, field, sent)
  return {}
}

/**
 * Returns the filter `email=` or `phone=`, which compares whole values. `email=` uses a database
 * index only while e-mail addresses must be unique.
 */
export const contactFilter =
  (field: ContactField) =>
  async (ctx: Context): Promise<FilterField> => {
    const { id, isUnique } = await attributeOf(ctx, 'persons', field)
    const isIndexed = isUnique || field === 'contact_numbers'
    return (isIndexed ? indexedField : conditionField)((values) => {
      if (field === 'contact_numbers')
        return hasPhoneNumber(values.flatMap((value) => phoneKeys(String(value), ctx.services.config.country)))
      // No address has a blank: it was a `+` that the client did not encode. Former versions stored
      // internationalized domains as they were sent.
      const sent = values.map((value) => String(value).trim().replaceAll(' ', '+'))
      const keys = [...new Set(sent.flatMap((value) => [addressKey(value), fold(value)]))]
      if (isUnique)
        return sql<SqlBool>`persons.id in (select point.entity_id from unique_values as point where point.entity_type = 'persons' and point.attribute_id = ${id} and point.value in (${sql.join(keys)}))`
      const { dialect } = ctx.services.store
      const tests = keys.map((key) => dialect.jsonPointMatches('persons.emails', 'equals', key))
      return sql<SqlBool>`(${sql.join(tests, sql` or `)})`
    })
  }

/** Returns the ids of the persons with these addresses, by `addressKey`. Checks no visibility. */
export async function personsByAddress(ctx: Context, keys: readonly string[]): Promise<Map<string, number[]>> {
  const found = new Map<string, number[]>()
  if (keys.length === 0) return found
  const { id } = await attributeOf(ctx, 'persons', 'emails')
  for (const { value, entity_id } of await personsWithValues(ctx.db, id, keys))
    found.set(value, [...(found.get(value) ?? []), entity_id])
  return found
}

const personsWithValues = cachedQuery((db: Db, attributeId: Bound<number>, values: Bound<string[]>) =>
  db
    .selectFrom('unique_values')
    .select(['value', 'entity_id'])
    .where('entity_type', '=', 'persons')
    .where('attribute_id', '=', attributeId)
    .where('value', 'in', values),
)

/** Returns the ids of the persons that a body names by their e-mail addresses. */
export async function personsByEmail(ctx: Context, texts: readonly string[]): Promise<Map<string, number[]>> {
  const found = await personsByAddress(ctx, texts.map(addressKey))
  return new Map(texts.map((text) => [text, found.get(addressKey(text)) ?? []]))
}
