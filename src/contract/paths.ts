// Paths of operations with their ids filled in, for links in replies. The contract is the only
// place that has the paths.
import type { OperationFact } from './types.ts'

/** The path of an operation with its parameters filled in, in order. */
export const pathTo = ({ path }: Pick<OperationFact, 'path'>, ...ids: readonly (number | string)[]): string =>
  ids.reduce<string>((filled, id) => filled.replace(/\{[^}]*\}/, () => String(id)), path)
