// Paths of operations with their ids, for links in replies: as the contract has them, so that a path is written down once.
import type { OperationFact } from './types.ts'

/** The path of an operation with its parameters filled in, in their order. */
export const pathTo = ({ path }: Pick<OperationFact, 'path'>, ...ids: readonly (number | string)[]): string =>
  ids.reduce<string>((filled, id) => filled.replace(/\{[^}]*\}/, () => String(id)), path)
