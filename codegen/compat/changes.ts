// The changelog of the contract, src/http/docs/guides/changes.md: the differences between the
// versions, newest first. The documentation serves it at /api/admin/documentation/changes.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ContractDocument } from '../read.ts'
import { compareContracts } from './compare.ts'
import type { ContractChange } from './compare-schema.ts'
import { versionOf } from './gate.ts'
import { readReleased, releasedFile } from './released.ts'

export const changesFile = 'src/http/docs/guides/changes.md'

/** Separates the generated chapter, about the unreleased version, from the chapters of releases. */
const releasedMark = '<!-- released versions -->'

const policy = `# Changes of the contract

This version keeps the contract of the last one, or says here what it breaks.

- **May change without notice**: an operation, a parameter, an optional key of a body, a key of a
  reply, a value of an enum in replies, an error status, a problem code or an event can be added.
  Clients ignore keys and values that they do not know.
- **Changes only in a major version**: everything else. A removed thing was deprecated before, and
  stays at least until its sunset.
- **Deprecated** operations, parameters and keys work as before. Calls that use one get the headers
  \`Deprecation\` (RFC 9745), \`Sunset\` (RFC 8594) and \`Link\`. \`GET /api/admin/tokens/{id}\` and
  \`accord doctor\` say which tokens still use which.
`

const line = ({ where, what }: ContractChange): string => `- \`${where}\` ${what}.`

function chapterOf(title: string, changes: readonly ContractChange[]): string {
  const groups = [
    ['Breaks clients', changes.filter(({ breaks }) => breaks !== undefined)],
    ['Deprecated', changes.filter(({ breaks, what }) => breaks === undefined && what.startsWith('is deprecated'))],
    ['Added', changes.filter(({ breaks, what }) => breaks === undefined && !what.startsWith('is deprecated'))],
  ] as const
  const parts = groups
    .filter(([, list]) => list.length > 0)
    .map(([head, list]) => `### ${head}\n\n${list.map(line).join('\n')}\n`)
  return `## ${title}\n\n${parts.join('\n') || 'Nothing changed.\n'}`
}

/** Returns the text of changes.md. With `isReleased`, today's chapter joins the released ones. */
export function renderChanges(
  root: string,
  document: ContractDocument,
  { isReleased = false }: { isReleased?: boolean } = {},
): string {
  // A scratch copy of the contract has no released one.
  const before = existsSync(join(root, releasedFile)) ? readReleased(root) : document
  const file = join(root, changesFile)
  const [last, next] = [versionOf(before), versionOf(document)]
  const [, history = ''] = (existsSync(file) ? readFileSync(file, 'utf8') : '').split(releasedMark)
  const title = isReleased ? next : last === next ? `After ${last}` : next
  const chapter = chapterOf(title, compareContracts(before, document))
  return `${policy}\n${isReleased ? '' : `${chapter}\n`}${releasedMark}\n\n${isReleased ? `${chapter}\n` : ''}${history.trim()}\n`
}
