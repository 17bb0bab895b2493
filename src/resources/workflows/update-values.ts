// Parses the value of an update action like a value in an API request, both when a workflow is
// saved and when it runs.
import { bodyReader } from '../../contract/input/body-reader.ts'
import type { FieldErrors } from '../../contract/output/problems.ts'
import type { Context } from '../../kernel/context.ts'
import { type Attribute, attributesOf } from '../attributes/attribute-set.ts'
import { parseValue } from '../attributes/schemas.ts'
import { oldNamesIn } from './comparable-fields.ts'

/** The entities whose attributes workflows can set. */
export type Target = 'leads' | 'persons' | 'quotes'

const operations = { leads: 'updateLead', persons: 'updatePerson', quotes: 'updateQuote' } as const

interface UpdateValue {
  /** The parsed value, in the form in which a record shows it. */
  value: unknown
  /** The request body that updates a record with the value. */
  body: object
  /** The validation errors of the value, under the field name `value`. */
  errors: FieldErrors
}

/** Returns the attribute that an update action names, by its code or by its old name. */
export async function attributeToSet(
  ctx: Context,
  target: Target,
  name: string | null,
): Promise<Attribute | undefined> {
  const attributes = await attributesOf(ctx, target)
  const isNamed = ({ code }: Attribute): boolean => code === name
  const oldNames = oldNamesIn(ctx, target)
  return attributes.find(isNamed) ?? attributes.find(({ code }) => oldNames.get(code) === name)
}

export function readUpdateValue(ctx: Context, target: Target, attribute: Attribute, sent: unknown): UpdateValue {
  const { code } = attribute
  // `body` contains the value as it was sent, because the update of the record parses custom
  // attributes itself.
  if (attribute.isOwn)
    return { body: { custom_attributes: { [code]: sent } }, ...parseValue(ctx, attribute, 'value', sent) }
  const { timezone: zone, strict } = ctx.services.config
  const read = bodyReader(ctx.services.contract, operations[target])({ [code]: sent }, { zone, strict })
  const errors = Object.entries(read.errors).map(([field, sentences]) => [field.replace(code, 'value'), sentences])
  return { body: read.value, value: (read.value as Record<string, unknown>)[code], errors: Object.fromEntries(errors) }
}
