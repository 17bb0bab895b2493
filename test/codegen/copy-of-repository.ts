// A copy of the repository, in which a test runs commands that change files.
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, expect } from 'vitest'
import { releasedFile, renderReleased } from '../../codegen/compat/released.ts'
import type { ContractDocument } from '../../codegen/read.ts'
import { useFolder } from '../support/folders.ts'

const repository = fileURLToPath(new URL('../..', import.meta.url))
const copied = [
  'src',
  'db',
  'codegen',
  'test',
  'openapi.yaml',
  'package.json',
  'tsconfig.json',
  'biome.json',
  '.gitignore',
]

/**
 * Copies the repository once for the tests of a file, as it is after the release of 1.0.0. Returns
 * the folder of the copy.
 */
export function useCopyOfRepository(name: string): string {
  const scratch = useFolder(name)
  beforeAll(() => {
    for (const path of copied) cpSync(join(repository, path), join(scratch, path), { recursive: true })
    for (const path of ['openapi.yaml', 'package.json']) {
      const text = readFileSync(join(scratch, path), 'utf8')
      writeFileSync(join(scratch, path), text.replace(/("?version"?: ?"?)1\.0\.0-rc\.\d+/, '$11.0.0'))
    }
    const served = JSON.parse(readFileSync(join(scratch, 'src/contract/document.gen.json'), 'utf8')) as ContractDocument
    const document = { ...served, info: { ...(served.info as object), version: '1.0.0' } }
    writeFileSync(join(scratch, releasedFile), renderReleased(document as ContractDocument))
    symlinkSync(join(repository, 'node_modules'), join(scratch, 'node_modules'))
  })
  return scratch
}

/** Replaces texts in a file of the copy. Each must be there. */
export function editIn(scratch: string, path: string, ...changes: [from: RegExp, to: string][]): void {
  const file = join(scratch, path)
  let text = readFileSync(file, 'utf8')
  for (const [from, to] of changes) {
    expect(text, `${path} ${from}`).toMatch(from)
    text = text.replace(from, to)
  }
  writeFileSync(file, text)
}
