// `npm run release-contract` makes today's contract the released one. Only the release workflow
// runs it, when a version is published.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ContractDocument, findRoot } from '../read.ts'
import { changesFile, renderChanges } from './changes.ts'
import { breakingFile, releasedFile, renderReleased } from './released.ts'

/** Writes released.json, keeps today's changes in changes.md, and empties breaking.txt. */
function release(root: string): void {
  const document = JSON.parse(readFileSync(join(root, 'src/contract/document.gen.json'), 'utf8')) as ContractDocument
  const changes = renderChanges(root, document, { isReleased: true })
  writeFileSync(join(root, releasedFile), renderReleased(document))
  writeFileSync(join(root, changesFile), changes)
  const [head = ''] = readFileSync(join(root, breakingFile), 'utf8').split(/^(?!#)/m)
  writeFileSync(join(root, breakingFile), head)
}

release(findRoot())
