// The gate of `npm run check`: it refuses a difference to the released contract that could break a
// client, unless breaking.txt names it and the version allows it.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ContractDocument, isObject } from '../read.ts'
import { compareContracts, keyOf } from './compare.ts'
import type { ContractChange } from './compare-schema.ts'
import { breakingFile, readReleased, releasedFile } from './released.ts'
import { isReleaseCandidate, majorOf, versionOf, versionOfNewParts } from './versions.ts'

export interface Gate {
  before: ContractDocument
  now: ContractDocument
  /** The lines of breaking.txt: `<where> <what> — <reason>`. */
  accepted: string
  /** The day of the check, such as `2026-12-01`. */
  today: string
}

/** Returns the findings for the contract of a repository; none without a released contract. */
export function gateOfRepository(root: string, now: ContractDocument): string[] {
  if (!existsSync(join(root, releasedFile))) return []
  const accepted = readFileSync(join(root, breakingFile), 'utf8')
  return gateFindings({ before: readReleased(root), now, accepted, today: new Date().toISOString().slice(0, 10) })
}

/** Returns a sentence for each fault, with the thing to write instead. */
export function gateFindings({ before, now, accepted, today }: Gate): string[] {
  const [last, next] = [versionOf(before), versionOf(now)]
  const changes = compareContracts(before, now)
  const lines = accepted.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  const isListed = (change: ContractChange): boolean =>
    lines.some((line) => line.startsWith(`${keyOf(change)} — `) && line.length > keyOf(change).length + 3)
  const mayBreak = isReleaseCandidate(last) || majorOf(next) > majorOf(last)
  const findings: string[] = []
  for (const change of changes.filter(({ breaks }) => breaks !== undefined)) {
    const sunset = change.removed?.deprecated === true ? String(change.removed['x-sunset']) : undefined
    const isDue = sunset !== undefined && sunset <= today
    const sentence = `${keyOf(change)}, which breaks clients of ${last}.`
    if (mayBreak && (isDue || isListed(change)) && (isReleaseCandidate(last) || change.removed === undefined || isDue))
      continue
    if (change.removed !== undefined && sunset !== undefined && !isDue)
      findings.push(`${sentence} It is promised until ${sunset}: remove it after that day, in a major version.`)
    else if (change.removed !== undefined && isDue)
      findings.push(`${sentence} Its sunset has passed: raise the version from ${next} to ${majorOf(last) + 1}.0.0.`)
    else if (mayBreak && isReleaseCandidate(last))
      findings.push(`${sentence} ${change.breaks} Or add the line "${keyOf(change)} — <reason>" to breaking.txt.`)
    else
      findings.push(
        `${sentence} ${change.breaks}${change.removed ? '' : ` Else: the line "${keyOf(change)} — <reason>" in breaking.txt, and version ${majorOf(last) + 1}.0.0.`}`,
      )
  }
  for (const line of lines)
    if (!changes.some((change) => change.breaks !== undefined && line.startsWith(`${keyOf(change)} — `)))
      findings.push(`breaking.txt: "${line}" names no breaking change. Delete the line.`)
  return [...findings, ...sinceFindings(changes, last, next), ...deprecationFindings(now)]
}

/** New operations, parameters and keys say since which version they exist. */
function sinceFindings(changes: readonly ContractChange[], last: string, next: string): string[] {
  const since = versionOfNewParts(last, next)
  if (since === undefined) return []
  return changes.flatMap(({ where, added }) =>
    added === undefined || added['x-since'] === since ? [] : [`${where} is new: write \`x-since: ${since}\`.`],
  )
}

const day = /^\d{4}-\d{2}-\d{2}$/

/** A deprecated part says since when, until when and what to use instead. */
export function deprecationFindings(document: ContractDocument): string[] {
  const findings: string[] = []
  const visit = (node: unknown, path: string): void => {
    if (Array.isArray(node)) for (const [index, each] of node.entries()) visit(each, `${path}.${index}`)
    if (!isObject(node)) return
    if (node.deprecated === true) {
      const [on, sunset] = [String(node['x-deprecated-on']), String(node['x-sunset'])]
      if (!day.test(on) || !day.test(sunset) || sunset <= on)
        findings.push(`${path} is deprecated: write \`x-deprecated-on\` and a later \`x-sunset\`, both as YYYY-MM-DD.`)
      if (node['x-alias'] === undefined && node['x-replaced-by'] === undefined)
        findings.push(`${path} is deprecated: name the thing to use instead in \`x-replaced-by\`.`)
    }
    for (const [key, each] of Object.entries(node))
      if (key !== 'example' && key !== 'examples') visit(each, path === '' ? key : `${path}.${key}`)
  }
  visit({ paths: document.paths, components: document.components }, '')
  return findings
}
