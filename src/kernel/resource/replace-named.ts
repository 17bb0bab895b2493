// Puts another record in the place of a record that stored rules name, before that record is
// deleted (`replace_with`). Each rule gets an ordinary update, with its permission, checks and
// events.
import type { Context } from '../context.ts'
import { invalid, Problem } from '../errors.ts'
import { type NamedRecord, refuseNamed, rulesNaming } from '../history/stored-references.ts'
import { capital } from '../values/format.ts'

/**
 * Puts the record `by` in the place of a record in all rules that name it. Throws 422, with errors
 * at the parameter `at`, when a rule cannot name it.
 */
export async function replaceInRules(
  ctx: Context,
  named: NamedRecord,
  by: number,
  at: `query.${string}`,
): Promise<void> {
  for (const rule of await rulesNaming(ctx, named))
    try {
      // If-Match names the version of the deleted record.
      await ctx.services.resources.get(rule.entity)?.replaceNamed?.({ ...ctx, ifMatch: null }, rule.id, named, by)
    } catch (error) {
      if (!(error instanceof Problem) || error.code !== 'validation_failed') throw error
      const sentences = Object.values(error.more.errors ?? {}).flat()
      throw invalid({ [at]: sentences.map((sentence) => `${rule.entity} ${rule.id}: ${sentence}`) })
    }
}

/**
 * Checks that stored rules do not prevent the deletion of a record. First puts `replacement` in its
 * place when one is given. Throws 409 `in_use` when a rule still names the record.
 */
export async function settleRules(
  ctx: Context,
  named: NamedRecord & { noun: string },
  replacement: number | undefined,
): Promise<void> {
  const { entity, id, noun } = named
  if (replacement !== undefined) {
    const at = 'query.replace_with'
    if (replacement === id) throw invalid({ [at]: [`Must be another ${noun}.`] })
    const seen = await ctx.services.resources.get(entity)?.visibleIds(ctx, [replacement])
    if (!seen?.has(replacement)) throw invalid({ [at]: [`No ${noun} has id ${replacement}.`] })
    await replaceInRules(ctx, { entity, id }, replacement, at)
  }
  await refuseNamed(ctx, { entity, ids: [id], called: `${capital(noun)} ${id}` })
}
