// The versions of the released contract and of today's.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { ContractDocument } from '../read.ts'
import { readReleased, releasedFile } from './released.ts'

export const versionOf = (document: ContractDocument): string =>
  String((document.info as { version?: string } | undefined)?.version)

/** A candidate such as 1.0.0-rc.1 promises nothing yet: a breaking change needs only its line. */
export const isReleaseCandidate = (version: string): boolean => version.includes('-')
export const majorOf = (version: string): number => Number.parseInt(version, 10)

/**
 * Returns the version that brings new parts: the version of the contract if it is later than the
 * released one, else the next minor version. Parts of 1.0.0 state no version, because no client
 * knows an earlier one.
 */
export function versionOfNewParts(last: string, next: string): string | undefined {
  if (last.startsWith('1.0.0-')) return undefined
  if (next !== last || isReleaseCandidate(last)) return next.replace(/-.*/, '')
  const [major = 0, minor = 0] = last.split('.').map(Number)
  return `${major}.${minor + 1}.0`
}

/** Returns the `x-since` of a part that is added to the contract today. */
export const sinceOf = (root: string, document: ContractDocument): string | undefined =>
  existsSync(join(root, releasedFile))
    ? versionOfNewParts(versionOf(readReleased(root)), versionOf(document))
    : undefined
