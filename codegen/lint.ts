// Lints openapi.yaml with the house rules in rules/ and adds the line number to each finding.
// `npm run lint:house` does so alone. @redocly/cli checks the rules of OpenAPI itself.
import { existsSync, realpathSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { abilityAreasOf, permissionKeysOf } from './operations.ts'
import { type Contract, type ContractDocument, contractFile, findRoot, listOperations, readContract } from './read.ts'
import type { Knowledge, LintContext, Rule } from './rule.ts'
import * as access from './rules/access.ts'
import * as examples from './rules/examples.ts'
import * as layout from './rules/layout.ts'
import * as limits from './rules/limits.ts'
import * as names from './rules/names.ts'
import * as paths from './rules/paths.ts'
import * as shapes from './rules/shapes.ts'
import * as style from './rules/style.ts'
import * as written from './rules/written.ts'

const knowledgeOf = (document: ContractDocument): Knowledge => ({
  permissionKeys: permissionKeysOf(document),
  abilityAreas: abilityAreasOf(document),
})

interface LintOptions {
  knowledge?: Knowledge
  areExamplesTrue?: boolean | undefined
}

/**
 * Returns all findings in the order of their lines. The format is `openapi.yaml:<line> <where>:
 * <what, why, what to do>`. With `areExamplesTrue`, the examples are known to be valid and are not
 * checked.
 */
export function lint(
  contract: Contract,
  { knowledge = knowledgeOf(contract.document), areExamplesTrue = false }: LintOptions = {},
): string[] {
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
  if (!areExamplesTrue) examples.examplesAreTrue(context)
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
  access.retriesAreSafe,
  access.servedByDocs,
  shapes.bodiesAreDeclared,
  shapes.bodiesAreClosed,
  shapes.filesTravelInForms,
  shapes.repliesArePlain,
  shapes.bodiesAreNotReplies,
  shapes.schemasEnd,
  limits.textsAreBounded,
  limits.integersAreBounded,
  written.writtenKeysAreShown,
  paths.pathIdsAreBounded,
  paths.pathsAreLowerCase,
  paths.pathsAreToldApart,
  shapes.statusesAreComplete,
  shapes.schemasAreDescribed,
  shapes.propertiesAreDescribed,
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

const script = process.argv[1]
if (script !== undefined && existsSync(script) && pathToFileURL(realpathSync(script)).href === import.meta.url) {
  const findings = lint(readContract(findRoot()))
  for (const finding of findings) console.error(finding)
  console.log(`${findings.length} findings`)
  process.exitCode = findings.length > 0 ? 1 : 0
}
