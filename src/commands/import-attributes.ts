// Makes custom attributes of the columns of an import that fill no field (`--create-attributes`).
import { operations } from '../contract/operations.gen.ts'
import type { Body } from '../contract/types.ts'
import { type Context, hasPermission } from '../kernel/context.ts'
import { handlers as attributes } from '../resources/attributes/resource.ts'
import { type ImportRow, type Mapping, planOf } from '../resources/data-transfer/settings.ts'
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

/** Creates the attributes of the type of the import. */
export async function createAttributes(
  ctx: Context,
  row: ImportRow,
  planned: readonly ProposedAttribute[],
): Promise<void> {
  const entity_type = planOf(row).type
  for (const { code, name, type } of planned) {
    const body = { code, name, type, entity_type } as Body<'createAttribute'>
    await attributes.createAttribute(ctx, { params: {}, query: {}, body } as never)
  }
}

/** Returns the line about an attribute. */
export const attributeLine = ({ header, code, type }: ProposedAttribute): string =>
  `  ${header}: custom attribute ${code} of the type ${type}`
