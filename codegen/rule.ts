// The type of a lint rule and of what it is given. Apart from lint.ts, which lists the rules, so that no import is circular.
import type { Contract, Document, Listed, Path } from './read.ts'

/** What the contract lists for its own rules: `permissionKeysOf` and `abilityAreasOf` of operations.ts. */
export interface Knowledge {
  permissionKeys: readonly string[]
  abilityAreas: readonly string[]
}

export interface LintContext extends Knowledge {
  contract: Contract
  document: Document
  operations: Listed[]
  /** Records a finding at a part of the contract, or at a line. */
  report: (at: Path | number, where: string, sentence: string) => void
}

/** Checks the contract. A finding says what is wrong, why it matters and what to do. */
export type Rule = (context: LintContext) => void
