// The language of persons, in which they get mails and documents.
import type { Context } from '../../kernel/context.ts'
import type { ValidationErrors } from '../../kernel/errors.ts'
import { fold } from '../../kernel/values/format.ts'
import { canonicalTag } from '../../texts/tags.ts'
import type { Texts } from '../../texts/texts.ts'
import { personsWith } from './consent.ts'

/** Returns the language to store, in the canonical form of its tag. */
export function languageColumn(sent: string | null | undefined, errors: ValidationErrors): string | null | undefined {
  if (typeof sent !== 'string') return sent
  const tag = canonicalTag(sent)
  if (tag === null) errors.invalid('language', 'Must be a BCP 47 language tag such as de or fr-CA.')
  return tag
}

/** Returns the texts in the language of a person, or else of the installation. */
export async function textsOfPerson(ctx: Context, id: number | null): Promise<Texts> {
  const row =
    id === null
      ? undefined
      : await ctx.db.selectFrom('persons').select('language').where('id', '=', id).executeTakeFirst()
  return ctx.services.textsFor(ctx, row?.language)
}

/** Returns the texts in the language of the oldest person with this address that has one. */
export async function textsOfAddress(ctx: Context, address: string): Promise<Texts> {
  const people = await personsWith(ctx, [fold(address)])
  const row = await people.select('language').where('language', 'is not', null).orderBy('id').executeTakeFirst()
  return ctx.services.textsFor(ctx, row?.language)
}
