// The rights of a campaign: the current rights of the user who last changed it, as
// for workflows. Its placeholders show only what this user sees, because the e-mail may carry a
// value to an address of the user's choice, such as the host of a link.
import { operations } from '../../contract/operations.gen.ts'
import { signedInAs } from '../../kernel/auth/tokens.ts'
import type { Context } from '../../kernel/context.ts'
import type { Texts } from '../../texts/texts.ts'
import { placeholdersFrom, placeholdersOfPersons } from '../email-templates/placeholder-values.ts'
import type { Placeholders } from '../email-templates/placeholders.ts'
import { persons } from '../persons/resource.ts'
import { inactiveReason, requireTokenAbilities } from '../users/acting-user.ts'

/** Throws 403 unless the calling token may read persons and send e-mails, as the campaign will. */
export const requireCampaignAbilities = (ctx: Context): void =>
  requireTokenAbilities(ctx, [operations.listPersons, operations.getPerson, operations.createEmail])

/** Returns the context with the editor's rights; null when the user is deleted or inactive. */
async function actAsEditor(ctx: Context, userId: number | null): Promise<Context | null> {
  const user = userId === null ? null : await signedInAs(ctx.db, userId)
  return user && { ...ctx, user }
}

/** Returns a sentence that explains why the campaign cannot be sent, or null. */
export const editorProblem = async (ctx: Context, userId: number | null): Promise<string | null> =>
  (await actAsEditor(ctx, userId)) === null ? inactiveReason('campaign') : null

/**
 * Returns the placeholder values of a person, which are empty when the editor does not see the
 * person. Returns a sentence when the e-mail must not be sent.
 */
export async function placeholdersForEditor(
  ctx: Context,
  userId: number | null,
  personId: number,
  texts: Texts,
): Promise<Placeholders | string> {
  const acting = await actAsEditor(ctx, userId)
  if (acting === null) return inactiveReason('campaign')
  const facts = (await placeholdersOfPersons(acting, [personId], texts)).get(personId)
  if (facts) return facts
  return (await persons.exists(ctx, personId))
    ? placeholdersFrom(acting, 'persons', {}, texts)
    : 'The person was deleted.'
}
