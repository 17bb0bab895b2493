// Recognizes a submission that a visitor sends twice: by a second click, a reload of the page, or a
// repeated request of a browser. The values count, not a token in the page, so that pages in a
// cache and forms of other sites are covered too.
import { createHash } from 'node:crypto'
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { stamp } from '../../kernel/runtime/clock.ts'
import type { PublicForm } from './public-form.ts'

/** The time within which equal values are the same submission, in milliseconds. */
const windowMs = 10 * 60_000

/**
 * Stores the submission in the transaction of `ctx`. Returns false when the same values of the form
 * are stored already.
 */
export async function isFirstSubmission(
  { db, time }: Context,
  form: PublicForm,
  { persons, leads }: Schema<'WebFormSubmission'>,
): Promise<boolean> {
  const digest = createHash('sha256')
    .update(JSON.stringify([form.formId, ...[persons, leads ?? {}].map(sorted)]))
    .digest('hex')
  await db
    .deleteFrom('web_form_submissions')
    .where('created_at', '<', stamp(new Date(time.getTime() - windowMs)))
    .execute()
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('web_form_submissions')
    .values({ digest, created_at: stamp(time) })
    .onConflict((conflict) => conflict.column('digest').doNothing())
    .executeTakeFirstOrThrow()
  return numInsertedOrUpdatedRows === 1n
}

/** Returns the entries by name, because the order of fields does not matter. */
const sorted = (values: object): [string, unknown][] =>
  Object.entries(values).sort(([one], [other]) => (one < other ? -1 : 1))
