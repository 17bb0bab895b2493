// Puts another record in the place of a record that stored rules name, before that record is
// deleted (`replace_with`). Each rule gets an ordinary update, with its permission, checks and
// events.
import type { Context } from '../context.ts'
import { invalid, Problem } from '../errors.ts'
import { type NamedRecord, refuseNamed, rulesNaming } from '../history/stored-references.ts'
import { capital } from '../values/format.ts'

const refuse = (sentences: readonly string[]): Problem => invalid({ 'query.replace_with': [...sentences] })

/**
 * Updates all rules that name a record. Throws 422 when the replacement does not exist or a rule
 * cannot name it.
 */
async function replaceInRules(
  ctx: Context,
  { entity, id, noun }: NamedRecord & { noun: string },
  by: number,
): Promise<void> {
  const seen = await ctx.services.resources.get(entity)?.visibleIds(ctx, [by])
  if (by === id || !seen?.has(by)) throw refuse([by === id ? `Must be another ${noun}.` : `No ${noun} has id ${by}.`])
  for (const rule of await rulesNaming(ctx, { entity, id }))
    try {
      // If-Match names the version of the deleted record.
      await ctx.services.resources
        .get(rule.entity)
        ?.replaceNamed?.({ ...ctx, ifMatch: null }, rule.id, { entity, id }, by)
    } catch (error) {
      if (!(error instanceof Problem) || error.code !== 'validation_failed') throw error
      const sentences = Object.values(error.more.errors ?? {}).flat()
      throw refuse(sentences.map((sentence) => `${rule.entity} ${rule.id}: ${sentence}`))
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
  if (replacement !== undefined) await replaceInRules(ctx, named, replacement)
  await refuseNamed(ctx, { entity, ids: [id], called: `${capital(noun)} ${id}` })
}
