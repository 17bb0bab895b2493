// Finds persons by phone number (DOMAIN 10.1). Several persons may share a number, and numbers
// compare by their digits.
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import type { Context } from '../../kernel/context.ts'
import { phoneKey } from '../../kernel/values/format.ts'

/** Replaces the stored numbers of a person. */
export async function savePhoneNumbers(
  { db }: Context,
  id: number,
  sent: readonly { value: string | null }[] | undefined,
): Promise<void> {
  if (sent === undefined) return
  const numbers = new Set(sent.flatMap(({ value }) => (value === null ? [] : phoneKey(value))))
  await db.deleteFrom('person_numbers').where('person_id', '=', id).execute()
  if (numbers.size === 0) return
  await db
    .insertInto('person_numbers')
    .values([...numbers].map((number) => ({ number, person_id: id })))
    .execute()
}

/** Returns the condition that a person has one of these normalized numbers. */
export const hasPhoneNumber = (keys: readonly string[]): RawBuilder<SqlBool> =>
  sql<SqlBool>`persons.id in (select stored.person_id from person_numbers as stored where stored.number in (${sql.join(keys)}))`

/** A shorter sequence of digits is not compared with phone numbers. */
const minDigits = 3

/**
 * Returns the condition that a phone number of the person contains the searched digits. Null when
 * the text cannot be a phone number.
 */
export function hasPhoneNumberLike(search: string): RawBuilder<SqlBool> | null {
  const digits = phoneKey(search)
  if (digits.length < minDigits || /\p{L}/u.test(search)) return null
  return sql<SqlBool>`persons.id in (select stored.person_id from person_numbers as stored where stored.number like ${`%${digits}%`})`
}
