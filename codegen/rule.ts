// The type of a lint rule. It is not in lint.ts, because lint.ts imports the rules.
import type { Contract, ContractDocument, Listed, Path } from './read.ts'

/**
 * Lists that the contract defines and the rules look up: see `permissionKeysOf` and
 * `abilityAreasOf`.
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

/** Checks the contract. A finding says what is wrong, why it matters and what to do. */
export type Rule = (context: LintContext) => void
