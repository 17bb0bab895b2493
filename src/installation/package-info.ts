// The folder of this program, its version, and its contract as written and as generated. It works
// from the sources and from dist, and imports no module of ours.
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

/** The folder of package.json and openapi.yaml: above `src`, or above `dist/src`. */
export const packageRoot: string = (() => {
  for (let folder = here; ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'package.json')) && manifestIn(folder).name === 'accord-crm') return folder
    if (folder === dirname(folder)) throw new Error(`No folder above ${here} is the package accord-crm.`)
  }
})()

export const { version } = manifestIn(packageRoot)

/** The generated contract. Read as a file, because importing JSON makes Node 20 print a warning. */
export function generatedContract(): Record<string, unknown> {
  return JSON.parse(readFileSync(join(here, '..', 'contract', 'document.gen.json'), 'utf8'))
}

/** openapi.yaml; null in a deployment without it. */
function writtenContract(): string | null {
  try {
    return readFileSync(join(packageRoot, 'openapi.yaml'), 'utf8')
  } catch {
    return null
  }
}

/** Whether the contract was generated from the present openapi.yaml. */
export function isGeneratedCurrent(generated: Record<string, unknown>): boolean {
  const written = writtenContract()
  return written === null || createHash('sha256').update(written).digest('hex') === generated['x-contract-hash']
}
