// Whose a telephone number is (DOMAIN 10.1): several persons may have the same, which is compared by its digits.
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import type { Context } from '../../kernel/context.ts'
import { phoneKey } from '../../kernel/values/format.ts'

/** Makes the rows of one person those of the numbers that were sent. */
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

/** Persons with one of the numbers, given as they are compared. */
export const hasPhoneNumber = (keys: readonly string[]): RawBuilder<SqlBool> =>
  sql<SqlBool>`persons.id in (select kept.person_id from person_numbers as kept where kept.number in (${sql.join(keys)}))`

/** Fewer digits than a number has are found by the words alone. */
const fewest = 3

/** Persons with a number that holds the digits of what was asked for, if that can be a number. */
export function hasPhoneNumberLike(asked: string): RawBuilder<SqlBool> | null {
  const digits = phoneKey(asked)
  if (digits.length < fewest || /\p{L}/u.test(asked)) return null
  return sql<SqlBool>`persons.id in (select kept.person_id from person_numbers as kept where kept.number like ${`%${digits}%`})`
}
