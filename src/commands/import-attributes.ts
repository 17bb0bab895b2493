// Makes custom attributes of the columns of an import that fill no field (`--create-attributes`).
import { operations } from '../contract/operations.gen.ts'
import type { Body } from '../contract/types.ts'
import { type Context, hasPermission } from '../kernel/context.ts'
import { transaction } from '../kernel/write/write.ts'
import { withProposedAttributes } from '../resources/attributes/attribute-set.ts'
import { attributes } from '../resources/attributes/resource.ts'
import { type ImportRow, type Mapping, mappedFields, planOf } from '../resources/data-transfer/settings.ts'
import {
  type ProposedAttribute,
  proposeAttributes,
} from '../resources/data-transfer/suggest-settings/propose-attributes.ts'
import { CommandError } from './command-error.ts'

/**
 * Returns the attributes for the columns that `mapping` leaves out. Throws CommandError when the
 * user may not create attributes.
 */
export async function plannedAttributes(
  ctx: Context,
  row: ImportRow,
  mapping: Mapping,
  kept: ReadonlySet<string>,
): Promise<ProposedAttribute[]> {
  const { permission } = operations.createAttribute
  if (!hasPermission(ctx, permission))
    throw new CommandError(`--create-attributes needs the permission ${permission}. Name another user with --as.`)
  return (await proposeAttributes(ctx, row, mapping)).filter(({ header }) => !kept.has(header))
}

/** Returns a context in which the import can be validated as if the attributes existed. */
export async function tryAttributes(
  ctx: Context,
  row: ImportRow,
  planned: readonly ProposedAttribute[],
): Promise<Context> {
  if (planned.length === 0) return ctx
  await createAttributes({ ...ctx, dryRun: true }, row, planned)
  const entity = planOf(row).type
  return {
    ...ctx,
    services: withProposedAttributes(
      ctx.services,
      planned.map((each) => ({ ...each, entity })),
    ),
  }
}

/** Creates all the attributes, or none. */
export const createAttributes = (ctx: Context, row: ImportRow, planned: readonly ProposedAttribute[]): Promise<void> =>
  transaction(
    ctx,
    async (ctx) => {
      const entity_type = planOf(row).type
      for (const { code, name, type } of planned) {
        const body = { code, name, type, entity_type } as Body<'createAttribute'>
        await attributes.handlers.createAttribute(ctx, { params: {}, query: {}, body } as never)
      }
    },
    { isLong: true },
  )

/** Returns the attributes that columns fill with these settings. */
export function filledAttributes(planned: readonly ProposedAttribute[], mapping: Mapping = {}): ProposedAttribute[] {
  const mapped = new Set(Object.values(mapping).flatMap(mappedFields))
  return planned.filter(({ header, code }) => mapped.has(code) || (header === code && !Object.hasOwn(mapping, header)))
}
