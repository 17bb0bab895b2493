// Adds the e-mail addresses and telephone numbers of a row to those of the matched person.
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { contactFields } from '../persons/contacts.ts'
import { type RowDraft, rowRefused } from './row-drafts.ts'

type Point = Schema<'ContactPoint'>

const maxContactPoints = 20

/**
 * Returns the body with the new entries of the row after the person's existing entries. A list that
 * the row clears stays empty.
 */
export async function mergeContactPoints(ctx: Context, draft: RowDraft, id: number, body: object): Promise<object> {
  const sent = body as Partial<Record<'emails' | 'contact_numbers', Point[]>>
  if (!sent.emails?.length && !sent.contact_numbers?.length) return body
  const row = await ctx.db
    .selectFrom('persons')
    .select(['emails', 'contact_numbers'])
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  const lists: typeof sent = {}
  for (const field of ['emails', 'contact_numbers'] as const) {
    if (!sent[field]?.length) continue
    const present = JSON.parse(row[field]) as Point[]
    const known = new Set(present.map(({ value }) => contactFields[field](value)))
    const added = sent[field].filter(({ value }) => !value || !known.has(contactFields[field](value)))
    if (added.length > 0 && present.length + added.length > maxContactPoints)
      throw rowRefused(draft, field, `The person would have more than ${maxContactPoints} entries.`)
    lists[field] = [...present, ...added]
  }
  return { ...body, ...lists }
}
