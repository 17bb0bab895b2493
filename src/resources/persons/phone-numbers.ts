// Stores the phone numbers of persons and finds persons by number. Several persons may have the
// same number.
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import { phoneKey, phoneSearchForms } from '../../../db/schema/phone-numbers.ts'
import { digitsOf } from '../../../db/schema/search-folding.ts'
import type { Context } from '../../kernel/context.ts'

/**
 * Replaces the stored numbers of a person. Does nothing when the request body has no numbers
 * (`sent` is undefined).
 */
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

/**
 * Returns the condition that a person has one of the numbers. `keys` are numbers normalized by
 * `phoneKey`.
 */
export const hasPhoneNumber = (keys: readonly string[]): RawBuilder<SqlBool> =>
  sql<SqlBool>`persons.id in (select stored.person_id from person_numbers as stored where stored.number in (${sql.join(keys)}))`

/** The minimum number of digits that are searched in phone numbers. */
const minDigits = 3

/**
 * Returns the condition that a phone number of the person contains the digits of the search text.
 * Returns null when the text cannot be a phone number.
 */
export function hasPhoneNumberLike(search: string, ctx: Context): RawBuilder<SqlBool> | null {
  const forms = searchedNumber(search, ctx)
  if (forms.length === 0) return null
  const tests = forms.map((digits) => sql`stored.number like ${`%${digits}%`}`)
  return sql<SqlBool>`persons.id in (select stored.person_id from person_numbers as stored where ${sql.join(tests, sql` or `)})`
}

/** Returns the digits to search when the search text can be a phone number, and else none. */
export function searchedNumber(search: string, { services }: Context): string[] {
  const isNumber = digitsOf(search).length >= minDigits && /^[^\p{L}]*(?:(?:ext|x)[ .:]*\d+)? *$/iu.test(search)
  if (!isNumber) return []
  return phoneSearchForms(search, services.config.country).filter((digits) => digits.length >= minDigits)
}
