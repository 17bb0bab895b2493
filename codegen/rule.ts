// Defines the type of a lint rule. The type is not in lint.ts, because lint.ts imports the rules.
import type { Contract, ContractDocument, Listed, Path } from './read.ts'

/**
 * The permission keys and ability areas that the contract defines (see `permissionKeysOf` and
 * `abilityAreasOf`). Rules look up names in these lists.
 */
export interface Knowledge {
  permissionKeys: readonly string[]
  abilityAreas: readonly string[]
}

export interface LintContext extends Knowledge {
  contract: Contract
  document: ContractDocument
  operations: Listed[]
  /** Adds a finding at a path of the contract, or at a line number. */
  report: (at: Path | number, where: string, sentence: string) => void
}

/**
 * A function that checks the contract and reports findings. A finding says what is wrong, why it
 * matters and what to do.
 */
export type Rule = (context: LintContext) => void
