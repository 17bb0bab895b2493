// How persons are compared and merged.
import { sql } from 'kysely'
import { phoneKey } from '../../../db/schema/phone-numbers.ts'
import type { Schema } from '../../contract/types.ts'
import type { Merging } from '../../kernel/resource/merging.ts'
import { addressKey } from '../../kernel/values/format.ts'
import { addressKeys, nameWords, phoneKeysOf } from '../../kernel/values/match-keys.ts'
import { saveUniquePoints } from './contacts.ts'
import { savePhoneNumbers } from './phone-numbers.ts'

type Reply = Pick<Schema<'Person'>, 'name' | 'emails' | 'contact_numbers' | 'organization_id'>

export const personMerging: Merging<{ id: number }, Reply> = {
  matchKeys: ({ name, emails, contact_numbers, organization_id }) => {
    const words = nameWords(name)
    return [
      ...(words !== '' && organization_id !== null ? [['name', `${words}@${organization_id}`] as const] : []),
      ...contact_numbers.flatMap(({ value }) => phoneKeysOf(value)),
      ...emails.flatMap(({ value }) => addressKeys(value)),
    ]
  },
  matchedFields: { email: 'emails', phone: 'contact_numbers', name: 'name' },
  isMatch: ({ kind }) => sql`${kind} <> 'domain'`,
  lists: { emails: ({ value }) => addressKey(value), contact_numbers: ({ value }) => phoneKey(value) },
  follows: { subscribed_source: 'subscribed', subscribed_at: 'subscribed' },
  derived: ['person_numbers'],
  refresh: async (ctx, { id }) => {
    const row = ctx.db.selectFrom('persons').select(['emails', 'contact_numbers']).where('id', '=', id)
    const { emails, contact_numbers } = await row.executeTakeFirstOrThrow()
    const [addresses, numbers] = [JSON.parse(emails), JSON.parse(contact_numbers)] as Schema<'ContactPoint'>[][]
    await saveUniquePoints(ctx, 'persons', id, 'emails', addresses)
    await saveUniquePoints(ctx, 'persons', id, 'contact_numbers', numbers)
    await savePhoneNumbers(ctx, id, numbers)
  },
}
