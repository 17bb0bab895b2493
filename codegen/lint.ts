// The linter of openapi.yaml: runs the house rules over the contract and adds the line to each finding. The rules live in
// rules/, one small function each; what OpenAPI itself demands, @redocly/cli checks.
import { type Contract, contractFile, type Document, type Listed, listOperations, type Path } from './read.ts'
import * as access from './rules/access.ts'
import * as examples from './rules/examples.ts'
import * as layout from './rules/layout.ts'
import * as names from './rules/names.ts'
import * as paths from './rules/paths.ts'
import * as shapes from './rules/shapes.ts'

export interface Knowledge {
  permissionKeys: readonly string[]
}

export interface Look extends Knowledge {
  document: Document
  operations: Listed[]
  lineCount: number
  report: (at: Path, where: string, sentence: string) => void
}

/** Looks at the contract and reports what is wrong, why it matters and what to do. */
export type Rule = (look: Look) => void

/** Every finding as `openapi.yaml:<line> <where>: <what, why, what to do>`, from top to bottom; none is good. */
export function lint(contract: Contract, knowledge: Knowledge): string[] {
  if (contract.problems.length > 0) return contract.problems
  const found = new Map<string, number>()
  const look: Look = {
    ...knowledge,
    document: contract.document,
    operations: listOperations(contract.document),
    lineCount: contract.text.trimEnd().split('\n').length,
    report: (at, where, sentence) => {
      const line = contract.lineOf(at)
      found.set(`${contractFile}:${line} ${where}: ${sentence}`, line)
    },
  }
  for (const rule of rules) rule(look)
  return [...found].sort(([, a], [, b]) => a - b).map(([finding]) => finding)
}

/** In the order they are explained to a newcomer; add yours here. */
const rules: readonly Rule[] = [
  layout.topLevelOrder,
  layout.withinBudget,
  layout.keysAreKnown,
  layout.referencesLead,
  layout.componentsAreUsed,
  layout.carriersAreKnown,
  layout.tagsInOrder,
  layout.parentsFirst,
  layout.openForAnEntity,
  names.schemasShadowNothing,
  names.componentsHaveOneName,
  names.enumsAreShared,
  shapes.operationsAreNamed,
  access.permissionsAreSettled,
  access.permissionsAreListed,
  access.abilitiesAreSettled,
  access.eventsAreSettled,
  access.servedByDocs,
  shapes.bodiesAreDeclared,
  shapes.bodiesAreClosed,
  shapes.filesTravelInForms,
  shapes.repliesArePlain,
  shapes.bodiesAreNotReplies,
  shapes.schemasEnd,
  paths.pathIdsAreBounded,
  paths.pathsAreToldApart,
  shapes.statusesAreComplete,
  shapes.schemasAreDescribed,
  examples.examplesAreTrue,
]
