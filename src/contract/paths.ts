// Fills in the ids of an operation's path, for links in replies. The paths come from the contract,
// so that no other file repeats a path.
import type { OperationFact } from './types.ts'

/** Returns the path of an operation. `ids` replace the path parameters, in order. */
export const pathTo = ({ path }: Pick<OperationFact, 'path'>, ...ids: readonly (number | string)[]): string =>
  ids.reduce<string>((filled, id) => filled.replace(/\{[^}]*\}/, () => String(id)), path)
