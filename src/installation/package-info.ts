// Where this program lives, seen from the sources as well as from dist: its version, its contract as written and as
// generated. Imports nothing of ours, so that everything may ask it.
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

/** The generated contract this program runs. Read as a file: importing JSON makes Node 20 print a warning. */
export function generatedContract(): Record<string, unknown> {
  return JSON.parse(readFileSync(join(here, '..', 'contract', 'document.gen.json'), 'utf8'))
}

/** The contract as people write it, null where only the compiled program was shipped. */
function writtenContract(): string | null {
  try {
    return readFileSync(join(packageRoot, 'openapi.yaml'), 'utf8')
  } catch {
    return null
  }
}

/** Whether the generated contract is that of openapi.yaml as it is now. */
export function isGeneratedCurrent(generated: Record<string, unknown>): boolean {
  const written = writtenContract()
  return written === null || createHash('sha256').update(written).digest('hex') === generated['x-contract-hash']
}
