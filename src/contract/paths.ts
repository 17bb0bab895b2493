// Builds the paths of links in replies from the paths of the contract.
import type { OperationFact } from './types.ts'

/** Returns the path of an operation. `ids` replace the path parameters, in order. */
export const pathTo = ({ path }: Pick<OperationFact, 'path'>, ...ids: readonly (number | string)[]): string =>
  ids.reduce<string>((filled, id) => filled.replace(/\{[^}]*\}/, () => String(id)), path)
