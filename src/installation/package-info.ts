// Finds the folder of this program, its version and its contract. Works in the source folder and in
// dist.
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

interface Manifest {
  name: string
  version: string
}

const here = dirname(fileURLToPath(import.meta.url))

const manifestIn = (folder: string): Manifest => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))

/** The folder with package.json and openapi.yaml. */
export const packageRoot: string = (() => {
  for (let folder = here; ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'package.json')) && manifestIn(folder).name === 'accord-crm') return folder
    if (folder === dirname(folder)) throw new Error(`No folder above ${here} is the package accord-crm.`)
  }
})()

export const { version } = manifestIn(packageRoot)

/**
 * Returns the generated contract. Not an import, because Node 20 prints a warning for JSON imports.
 */
export function generatedContract(): Record<string, unknown> {
  const path = join(here, '..', 'contract', 'document.gen.json')
  if (!existsSync(path)) throw new UnbuiltError(path)
  return JSON.parse(readFileSync(path, 'utf8'))
}

/** A file that the build generates is missing. */
export class UnbuiltError extends Error {
  constructor(path: string) {
    super(`${path} is missing: this copy of the program is not built. Run in ${packageRoot}: npm ci`)
    this.name = 'UnbuiltError'
  }
}

/** Returns the text of openapi.yaml, or null in a deployment without this file. */
function writtenContract(): string | null {
  try {
    return readFileSync(join(packageRoot, 'openapi.yaml'), 'utf8')
  } catch {
    return null
  }
}

/** Returns whether the contract was generated from the current openapi.yaml. */
export function isGeneratedCurrent(generated: Record<string, unknown>): boolean {
  const written = writtenContract()
  return written === null || createHash('sha256').update(written).digest('hex') === generated['x-contract-hash']
}
