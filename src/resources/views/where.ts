// Checks the conditions of a view as the query of its type checks them: by the schema of the body,
// and by the compiler of conditions.
import { propertySchema } from '../../contract/input/body-reader.ts'
import { type OpenReader, openReader } from '../../contract/input/open-schema.ts'
import { operations } from '../../contract/operations.gen.ts'
import type { FieldErrors } from '../../contract/output/problems.ts'
import type { OperationId, Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import { perOwner } from '../../kernel/runtime/per-owner.ts'

type Type = Schema<'ViewType'>

const readersOf = perOwner((_contract: object) => new Map<Type, OpenReader>())

/** Returns the reader of the property `where` of a query of records of the type. */
function readerOf({ services: { contract, resources } }: Context, type: Type): OpenReader {
  const readers = readersOf(contract)
  const known = readers.get(type)
  if (known) return known
  const path = `${resources.get(type)?.listOperation.path}/query`
  const query = (Object.keys(operations) as OperationId[]).find((id) => operations[id].path === path)
  if (query === undefined) throw new Error(`The contract has no operation ${path}.`)
  const reader = openReader(contract, 'where', propertySchema(contract, query, 'where'))
  readers.set(type, reader)
  return reader
}

/** Returns the conditions in stored form, and their errors by field. */
export async function readWhere(
  ctx: Context,
  type: Type,
  sent: unknown,
): Promise<{ value: Record<string, unknown>; errors: FieldErrors }> {
  const { strict, timezone } = ctx.services.config
  const { value, errors } = readerOf(ctx, type)(sent, { strict, zone: timezone })
  const where = value as Record<string, unknown>
  if (Object.keys(errors).length > 0) return { value: where, errors }
  try {
    await ctx.services.resources.get(type)?.query(ctx, { where })
    return { value: where, errors }
  } catch (error) {
    // Other filters can leave few enough records to read.
    if (error instanceof Problem && error.code === 'query_too_costly') return { value: where, errors }
    if (!(error instanceof Problem) || error.more.errors === undefined) throw error
    return { value: where, errors: error.more.errors }
  }
}
