#!/usr/bin/env node
// The program `accord`. It loads the command line after the version of Node is known to be new
// enough.
import './node-version.mjs'

try {
  await import('./command-line.ts')
} catch (error) {
  if (!(error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND')) throw error
  const [what = ''] = error.message.split('\n')
  process.stderr.write(
    `A part of the program is missing: ${what}. In a checkout run: npm ci. Otherwise install the package again.\n`,
  )
  process.exit(1)
}
