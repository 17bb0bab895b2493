// Checks the rules for a body that the schema has already refused, so that one reply lists the
// errors of the schema and of the rules.
import type { FieldErrors } from '../../contract/output/problems.ts'
import type { Context } from '../context.ts'
import { Problem, ValidationErrors } from '../errors.ts'
import type { AnyBody, AnyResource, ResourceParts } from './any-definition.ts'
import type { Examine } from './definition.ts'
import type { RecordReader } from './read-records.ts'

export function createExaminers({ d }: Pick<ResourceParts, 'd'>, reader: RecordReader): Pick<AnyResource, 'examiners'> {
  async function examine(
    ctx: Context,
    id: number | null,
    body: unknown,
    refused: readonly string[],
  ): Promise<FieldErrors> {
    const errors = new ValidationErrors(refused)
    if (d.governs?.some((field) => errors.isRefused(field))) return {}
    try {
      const current = id === null ? null : await reader.findRow(ctx, id)
      // Some rules create records while they run. In a dry run they create none.
      await d.toRow(body as AnyBody, { ctx: { ...ctx, dryRun: true }, current, errors })
      return errors.all
    } catch (error) {
      if (!(error instanceof Problem) || error.status >= 500) throw error
      return { ...errors.all, ...error.more.errors }
    }
  }

  const onCreate: Examine = (ctx, { body }, refused) => examine(ctx, null, body, refused)
  const onUpdate: Examine = (ctx, { params, body }, refused) => examine(ctx, params.id as number, body, refused)
  return { examiners: { [d.operations.create]: onCreate, [d.operations.update]: onUpdate } }
}
