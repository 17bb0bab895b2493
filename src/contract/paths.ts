// Paths of operations with their ids filled in, for links in replies. The contract is the only
// place that has the paths.
import type { OperationFact } from './types.ts'

/** Returns the path of an operation with `ids` in place of its parameters, in order. */
export const pathTo = ({ path }: Pick<OperationFact, 'path'>, ...ids: readonly (number | string)[]): string =>
  ids.reduce<string>((filled, id) => filled.replace(/\{[^}]*\}/, () => String(id)), path)
