// Lints openapi.yaml with the house rules in rules/ and adds the line number to each finding.
// @redocly/cli checks the rules of OpenAPI itself.
import { type Contract, contractFile, listOperations } from './read.ts'
import type { Knowledge, LintContext, Rule } from './rule.ts'
import * as access from './rules/access.ts'
import * as examples from './rules/examples.ts'
import * as layout from './rules/layout.ts'
import * as names from './rules/names.ts'
import * as paths from './rules/paths.ts'
import * as shapes from './rules/shapes.ts'
import * as style from './rules/style.ts'

/**
 * Returns all findings in the order of their lines. The format is `openapi.yaml:<line> <where>:
 * <what, why, what to do>`.
 */
export function lint(contract: Contract, knowledge: Knowledge): string[] {
  if (contract.problems.length > 0) return contract.problems
  const found = new Map<string, number>()
  const context: LintContext = {
    ...knowledge,
    contract,
    document: contract.document,
    operations: listOperations(contract.document),
    report: (at, where, sentence) => {
      const line = typeof at === 'number' ? at : contract.lineOf(at)
      found.set(`${contractFile}:${line} ${where}: ${sentence}`, line)
    },
  }
  for (const rule of rules) rule(context)
  if (contract.text !== '') for (const rule of styleRules) rule(context)
  return [...found].sort(([, a], [, b]) => a - b).map(([finding]) => finding)
}

/** The rules that need only the parsed document. Add new rules here. */
const rules: readonly Rule[] = [
  layout.topLevelOrder,
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

/**
 * The rules that check the text of openapi.yaml. These rules do not run on the document of a
 * running server, because that document has no text.
 */
const styleRules: readonly Rule[] = [
  style.linesAreNarrow,
  style.descriptionsStandAlone,
  style.partsStandAlone,
  style.keysAreInOrder,
  style.commonErrorsAreShared,
  style.longListsAreAliased,
  style.ruleLinesInOrder,
]
