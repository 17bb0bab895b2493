// All handlers of all slices as one object: an operation of the contract without a handler does not compile. The resources
// are listed too, because every path below `/{id}` looks its record up through them (DOMAIN 4.3).
import { type OperationFact, operations } from './contract/operations.gen.ts'
import type { Context } from './kernel/context.ts'
import type { Handlers } from './kernel/handler.ts'
import { handlers as sources, sources as sourcesResource } from './resources/sources/resource.ts'
import { handlers as types, types as typesResource } from './resources/types/resource.ts'

export const handlers: Handlers = {
  ...sources,
  ...types,
} as unknown as Handlers

const shown = {
  getSource: sourcesResource,
  getType: typesResource,
}

/** Show path of a resource to the function that finds a record, or throws 404 or 412. */
export const locators: Record<string, (ctx: Context, id: number) => Promise<void>> = Object.fromEntries(
  Object.entries(shown).map(([operation, resource]) => [(operations as Record<string, OperationFact>)[operation]?.path ?? '', resource.locate]),
)
